{{/*
The Deployment of a process. The argument is a dict: `root` the chart's context, `component` the command, `set` the name of
a set of workers or "", `name` of the Deployment, `own` the values of this process, `arguments` of the command, `grace`
seconds until a stopped process is killed; for workers with versions also `version`, `account` and `image`.
*/}}
{{- define "perdure.process" -}}
{{- $root := .root -}}
{{- $own := .own -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "perdure.labels" . | nindent 4 }}
spec:
  {{- if not (dig "autoscaling" "enabled" false $own) }}
  replicas: {{ $own.replicas }}
  {{- end }}
  selector:
    matchLabels:
      {{- include "perdure.selectorLabels" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "perdure.labels" . | nindent 8 }}
        {{- with $root.Values.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      annotations:
        # A changed setting restarts the processes, which read settings only when they start.
        perdure.dev/settings: {{ include "perdure.settings" $root | sha256sum }}
        {{- with $root.Values.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      serviceAccountName: {{ include "perdure.serviceAccount" . }}
      # A Service called perdure-health would otherwise set PERDURE_HEALTH_PORT.
      enableServiceLinks: false
      terminationGracePeriodSeconds: {{ .grace }}
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
      {{- with $root.Values.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      containers:
        - name: {{ .component }}
          image: {{ .image | default (include "perdure.image" $root) }}
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
            {{- . | nindent 12 }}
          {{- end }}
          ports:
            - name: health
              containerPort: 8080
            - name: sdk-metrics
              containerPort: 8081
            {{- if eq .component "codec" }}
            - name: codec
              containerPort: 8090
            {{- end }}
          # Answers as soon as the process runs, regardless of other servers.
          startupProbe:
            httpGet:
              path: /healthz
              port: health
            periodSeconds: 3
            timeoutSeconds: 5
            failureThreshold: 40
          livenessProbe:
            httpGet:
              path: /healthz
              port: health
            periodSeconds: 10
            timeoutSeconds: 5
            failureThreshold: 6
          readinessProbe:
            httpGet:
              path: /readyz
              port: health
            periodSeconds: 5
            timeoutSeconds: 5
          resources:
            {{- toYaml $own.resources | nindent 12 }}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop: [ALL]
          volumeMounts:
            - name: tmp
              mountPath: /tmp
            {{- include "perdure.temporalMounts" . | trim | nindent 12 }}
            {{- range $own.secretFiles }}
            - name: secret-{{ .secretName }}
              mountPath: {{ .mountPath }}
              readOnly: true
            {{- end }}
      volumes:
        - name: tmp
          emptyDir:
            sizeLimit: 256Mi
        {{- include "perdure.temporalVolumes" . | trim | nindent 8 }}
        {{- range $own.secretFiles }}
        - name: secret-{{ .secretName }}
          secret:
            secretName: {{ .secretName }}
            defaultMode: 0440
        {{- end }}
      # Two replicas on one node would fail together with the node.
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              {{- include "perdure.selectorLabels" . | nindent 14 }}
      {{- with $own.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $own.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $own.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
{{- end -}}

{{/* The ServiceAccount of a process. */}}
{{- define "perdure.account" -}}
{{- $root := .root -}}
{{- if dig "serviceAccount" "create" true .own }}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "perdure.serviceAccount" . }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "perdure.labels" . | nindent 4 }}
  {{- with dig "serviceAccount" "annotations" (dict) .own }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* The objects beside a Deployment: its ServiceAccount, and its PodDisruptionBudget. */}}
{{- define "perdure.besides" -}}
{{- $root := .root -}}
{{- include "perdure.account" . }}
{{- if $root.Values.disruptionBudgets }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "perdure.labels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      {{- include "perdure.selectorLabels" . | nindent 6 }}
{{- end }}
{{- end -}}

{{/* The environment variables that the values of one process name, including those from Secrets. */}}
{{- define "perdure.environment" -}}
{{- if eq .component "worker" }}
# Fewer malloc arenas fragment less over thousands of passes.
- name: MALLOC_ARENA_MAX
  value: "2"
{{- end }}
{{- range $name, $value := .own.environment }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end -}}
