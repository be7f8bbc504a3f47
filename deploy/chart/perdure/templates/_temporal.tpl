{{/*
The files with which a process authenticates to Temporal, and the files of its encryption keys. They are mounted instead of
being variables, so that a renewed file takes effect without a restart. dict "root" . "component" its command
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

{{/* The version of the workers that is installed; if none is named, the image's. */}}
{{- define "perdure.buildId" -}}
{{- if .Values.versioning.enabled -}}
{{- $build := .Values.versioning.buildId | default (.Values.image.digest | replace "sha256:" "" | trunc 12) | default .Values.image.tag | default .Chart.AppVersion -}}
{{- if not (regexMatch "^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$" $build) -}}
{{- fail (printf "%q cannot name a version, as it is no valid label: set versioning.buildId" $build) -}}
{{- end -}}
{{- $build -}}
{{- end -}}
{{- end -}}

{{/*
The Deployment's name of one version: dict "process" the set's name "build" its id. It contains a hash of the version, since
two versions under one Deployment would change its selector, which Kubernetes refuses in the middle of an upgrade.
*/}}
{{- define "perdure.versioned" -}}
{{- printf "%s-%s" .process (.build | sha256sum | trunc 10) -}}
{{- end -}}

{{/*
A Job that calls Temporal, once for each revision of the release; each of these Jobs may be repeated.
dict "root" . "name" what it is called "arguments" of its command
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
