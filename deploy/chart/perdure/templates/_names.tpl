{{/* The prefix of the names of a release's objects, cluster-scoped ones included. */}}
{{- define "perdure.name" -}}
{{- default .Release.Name .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "perdure.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "perdure.chartLabels" -}}
app.kubernetes.io/name: perdure
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/*
The labels that select one process. The argument is a dict: `root` the chart's context, `component` (such as "worker"),
`set` the name of a set of workers or "", and `version` the build id, if workers have versions.
*/}}
{{- define "perdure.selectorLabels" -}}
app.kubernetes.io/name: perdure
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- if .set }}
perdure.dev/worker: {{ .set }}
{{- end }}
{{- with .version }}
perdure.dev/version: {{ . | quote }}
{{- end }}
{{- end -}}

{{- define "perdure.labels" -}}
{{ include "perdure.chartLabels" .root }}
app.kubernetes.io/component: {{ .component }}
{{- if .set }}
perdure.dev/worker: {{ .set }}
{{- end }}
{{- with .version }}
perdure.dev/version: {{ . | quote }}
{{- end }}
{{- end -}}

{{/* The ServiceAccount of a process, from a dict: `own` its values, and for the default `account`, else `name` of its Deployment. */}}
{{- define "perdure.serviceAccount" -}}
{{- dig "serviceAccount" "name" "" .own | default .account | default .name -}}
{{- end -}}


{{/* The ServiceAccount of a set of workers, from a dict: `root` the chart's context, `set` the set's entry of `workers`. */}}
{{- define "perdure.workerAccount" -}}
{{- $own := mustMergeOverwrite (deepCopy .root.Values.workerDefaults) .set -}}
{{- include "perdure.serviceAccount" (dict "name" (printf "%s-worker-%s" (include "perdure.name" .root) .set.name) "own" $own) -}}
{{- end -}}

{{/* The ServiceAccount of `watch` or `events`, which may run in the workers' process. Its dict: `root`, `process`, and `own` its values. */}}
{{- define "perdure.partAccount" -}}
{{- if .root.Values.together -}}
{{- include "perdure.workerAccount" (dict "root" .root "set" (first .root.Values.workers)) -}}
{{- else -}}
{{- include "perdure.serviceAccount" (dict "name" (printf "%s-%s" (include "perdure.name" .root) .process) "own" .own) -}}
{{- end -}}
{{- end -}}
