{{/*
The files with which a process authenticates to Temporal, and the files of its encryption keys. They are mounted instead of
being variables, so that a renewed file takes effect without a restart. The argument is a dict: `root`, `component`.
*/}}
{{- define "perdure.temporalFiles" -}}
{{- $values := .root.Values -}}
{{- $files := list -}}
{{- with $values.temporal.tls.secretName }}{{ $files = append $files (dict "name" "temporal-tls" "secret" .) }}{{ end -}}
{{- with $values.temporal.apiKey.secretName }}{{ $files = append $files (dict "name" "temporal-api-key" "secret" .) }}{{ end -}}
{{- with $values.temporal.encryption.secretName }}{{ $files = append $files (dict "name" "temporal-keys" "secret" .) }}{{ end -}}
{{- if eq .component "codec" }}{{ with $values.codec.tokens.secretName }}{{ $files = append $files (dict "name" "codec-tokens" "secret" .) }}{{ end }}{{ end -}}
{{- $files | toJson -}}
{{- end -}}

{{- define "perdure.temporalMounts" -}}
{{- range include "perdure.temporalFiles" . | fromJsonArray }}
- name: {{ .name }}
  mountPath: /etc/perdure/{{ .name }}
  readOnly: true
{{- end }}
{{- end -}}

{{- define "perdure.temporalVolumes" -}}
{{- range include "perdure.temporalFiles" . | fromJsonArray }}
- name: {{ .name }}
  secret:
    secretName: {{ .secret }}
    defaultMode: 0440
{{- end }}
{{- end -}}

{{/* The build id of the installed workers; if the values name none, the image's digest or tag. */}}
{{- define "perdure.buildId" -}}
{{- if .Values.versioning.enabled -}}
{{- $build := .Values.versioning.buildId | default (.Values.image.digest | replace "sha256:" "" | trunc 12) | default .Values.image.tag | default .Chart.AppVersion -}}
{{- if not (regexMatch "^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$" $build) -}}
{{- fail (printf "%q cannot name a version, because it is no valid label value: set versioning.buildId" $build) -}}
{{- end -}}
{{- $build -}}
{{- end -}}
{{- end -}}

{{/*
The name of the Deployment of one version, from a dict: `process` the name without version, `build` the build id. It
contains a hash of the version, because Kubernetes refuses to change a Deployment's selector, which contains the version.
*/}}
{{- define "perdure.versioned" -}}
{{- printf "%s-%s" .process (.build | sha256sum | trunc 10) -}}
{{- end -}}

{{/*
A Job that calls Temporal, with a new name for each revision of the release. Its command may be repeated without harm.
The argument is a dict: `root` the chart's context, `name` the middle of the Job's name, `arguments` of the command.
*/}}
{{- define "perdure.temporalJob" -}}
{{- $root := .root -}}
{{- $process := dict "root" $root "component" "temporal" "set" "" "own" dict "arguments" .arguments -}}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ include "perdure.name" $root }}-{{ .name }}-{{ $root.Release.Revision }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "perdure.labels" $process | nindent 4 }}
spec:
  backoffLimit: 10
  ttlSecondsAfterFinished: 3600
  template:
    {{- include "perdure.jobPod" $process | nindent 4 }}
{{- end -}}
