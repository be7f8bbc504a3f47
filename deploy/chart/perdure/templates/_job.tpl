{{/*
The pod of a Job. The argument is a dict: `root` the chart's context, `component` its label, `set` "", `arguments` of the
command, `own` the values of this Job, `restart` the restart policy, and `name` the ServiceAccount. Without `name` the pod
has no rights in the cluster.
*/}}
{{- define "perdure.jobPod" -}}
{{- $root := .root -}}
{{- $own := .own -}}
metadata:
  labels:
    {{- include "perdure.labels" . | nindent 4 }}
    {{- with $root.Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  restartPolicy: {{ .restart | default "OnFailure" }}
  {{- if .name }}
  serviceAccountName: {{ include "perdure.serviceAccount" . }}
  # A Service called perdure-health would otherwise set PERDURE_HEALTH_PORT.
  enableServiceLinks: false
  {{- else }}
  automountServiceAccountToken: false
  {{- end }}
  {{- with $root.Values.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: {{ $root.Values.podSecurity.runAsUser }}
    runAsGroup: {{ $root.Values.podSecurity.runAsUser }}
    fsGroup: {{ $root.Values.podSecurity.runAsUser }}
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: {{ .component }}
      image: {{ include "perdure.image" $root }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      args: {{ .arguments | toJson }}
      envFrom:
        - configMapRef:
            name: {{ include "perdure.name" $root }}-settings
        {{- range $own.secretEnvironments }}
        - secretRef:
            name: {{ . }}
        {{- end }}
      {{- with include "perdure.environment" . | trim }}
      env:
        {{- . | nindent 8 }}
      {{- end }}
      resources:
        {{- $own.resources | default (dict "requests" (dict "cpu" "100m" "memory" "128Mi")) | toYaml | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      volumeMounts:
        - name: tmp
          mountPath: /tmp
        {{- include "perdure.temporalMounts" . | trim | nindent 8 }}
        {{- range $own.secretFiles }}
        - name: secret-{{ .secretName }}
          mountPath: {{ .mountPath }}
          readOnly: true
        {{- end }}
  volumes:
    - name: tmp
      emptyDir:
        sizeLimit: 64Mi
    {{- include "perdure.temporalVolumes" . | trim | nindent 4 }}
    {{- range $own.secretFiles }}
    - name: secret-{{ .secretName }}
      secret:
        secretName: {{ .secretName }}
        defaultMode: 0440
    {{- end }}
  {{- with $own.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $own.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $own.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
