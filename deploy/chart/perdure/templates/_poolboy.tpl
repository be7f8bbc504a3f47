{{/* Values of Poolboy's chart, translated to this chart's. */}}

{{- define "perdure.operatorDomain" -}}
{{- $said := .Values.operatorDomain -}}
{{- if kindIs "string" $said -}}
{{ $said }}
{{- else if $said.name -}}
{{ $said.name }}
{{- else -}}
{{ default "poolboy" .Values.nameOverride }}.gpte.redhat.com
{{- end -}}
{{- end -}}

{{- define "perdure.claimsNamespace" -}}
{{- $of := default dict .Values.namespace -}}
{{ $of.name | default "poolboy" }}
{{- end -}}

{{/* Poolboy's intervals and similar values, as variables. */}}
{{- define "perdure.poolboyVariables" -}}
{{- range $value, $variable := dict "manageClaimsInterval" "MANAGE_CLAIMS_INTERVAL" "manageHandlesInterval" "MANAGE_HANDLES_INTERVAL" "managePoolsInterval" "MANAGE_POOLS_INTERVAL" "resourceRefreshInterval" "RESOURCE_REFRESH_INTERVAL" "clusterDomain" "CLUSTER_DOMAIN" }}
{{- with index $.Values $value }}
{{ $variable }}: {{ . | toString | quote }}
{{- end }}
{{- end }}
{{- with (default dict .Values.namespace).name }}
OPERATOR_NAMESPACE: {{ . | quote }}
{{- end }}
{{- end -}}

{{/* Values of Poolboy's chart that concern Poolboy's own pods and have no effect here. */}}
{{- define "perdure.poolboyWithoutEffect" -}}
{{- $said := list -}}
{{- range list "affinity" "anarchy" "deploy" "enablePrometheusMetrics" "nodeSelector" "operatorMode" "replicaCount" "resourceHandlerCount" "resourceHandlerResources" "resourceWatchResources" "resources" "service" "serviceAccount" "tolerations" -}}
{{- if hasKey $.Values . }}{{ $said = append $said . }}{{ end -}}
{{- end -}}
{{ join ", " $said }}
{{- end -}}
