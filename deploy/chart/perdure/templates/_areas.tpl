{{/*
The areas that some set of workers serves, as JSON. Values that cannot work are refused here, with the reason. An area
without workers is not watched, and instances are served only if PERDURE_INSTANCES_QUEUES names their queues.
*/}}
{{- define "perdure.areas" -}}
{{- $areas := list -}}
{{- $names := list -}}
{{- range .Values.workers -}}
{{- if has .name $names -}}{{- fail (printf "two sets of workers are called %q" .name) -}}{{- end -}}
{{- $names = append $names .name -}}
{{- $areas = concat $areas .areas | uniq -}}
{{- end -}}
{{- if and .Values.together (gt (len .Values.workers) 1) -}}
{{- fail "`together` runs one process, but `workers` names several sets: keep one set, or unset `together`" -}}
{{- end -}}
{{- if and .Values.together .Values.versioning.enabled -}}
{{- fail "versions side by side need workers apart from the watcher: unset `together` or versioning.enabled" -}}
{{- end -}}
{{- $queues := index .Values.settings "PERDURE_INSTANCES_QUEUES" -}}
{{- if and (has "instances" $areas) (not $queues) -}}
{{- fail "workers serve instances, but settings.PERDURE_INSTANCES_QUEUES names no queue" -}}
{{- end -}}
{{- if and $queues (not (has "instances" $areas)) -}}
{{- fail "settings.PERDURE_INSTANCES_QUEUES names queues, but no set of workers serves instances" -}}
{{- end -}}
{{- $areas | sortAlpha | toJson -}}
{{- end -}}

{{/* The area whose rights a file in files/rbac grants; `every` if all processes need them. */}}
{{- define "perdure.areaOfRights" -}}
{{- get (dict
  "worker.yaml" "accounts" "watch.yaml" "accounts" "people.yaml" "accounts" "clients.yaml" "accounts" "pauses.yaml" "every"
  "accounts-policy.yaml" "accounts" "loadbalancers-policy.yaml" "loadbalancers" "threescale-policy.yaml" "threescale"
  "claims.yaml" "claims"
  "loadbalancers.yaml" "loadbalancers" "loadbalancers-people.yaml" "loadbalancers" "services.yaml" "loadbalancers"
  "instances.yaml" "instances" "events.yaml" "instances" "instances-nodes.yaml" "instances"
  "threescale.yaml" "threescale" "threescale-people.yaml" "threescale"
  "audits.yaml" "every" "accounts-audits.yaml" "accounts" "claims-audits.yaml" "claims"
  "loadbalancers-audits.yaml" "loadbalancers" "instances-audits.yaml" "instances" "threescale-audits.yaml" "threescale"
) . -}}
{{- end -}}

{{/* The area of a definition, by the group in its file's name. */}}
{{- define "perdure.areaOfDefinition" -}}
{{- if hasPrefix "aws.managed.openshift.io_" . -}}accounts
{{- else if hasPrefix "poolboy.gpte.redhat.com_" . -}}claims
{{- else if hasPrefix "yawol.stackit.cloud_" . -}}loadbalancers
{{- else if hasPrefix "capabilities.3scale.net_" . -}}threescale
{{- else if hasPrefix "perdure.dev_" . -}}instances
{{- end -}}
{{- end -}}

{{/* The prefix of the names of all task queues and of the workers' deployment; empty if the cluster has no name. */}}
{{- define "perdure.ofCluster" -}}
{{- with index .root.Values.settings "PERDURE_CLUSTER" -}}{{ . }}{{ $.between }}{{- end -}}
{{- end -}}

{{/* An area's task queues for a ScaledObject: the type of each, and its name without the cluster's prefix. */}}
{{- define "perdure.queues" -}}
{{- get (dict
  "accounts" (list (dict "queue" "accounts" "type" "workflow") (dict "queue" "kube" "type" "activity") (dict "queue" "aws" "type" "activity") (dict "queue" "aws-organization" "type" "activity"))
  "claims" (list (dict "queue" "claims" "type" "workflow") (dict "queue" "claims-passes" "type" "activity"))
  "instances" (list (dict "queue" "instances" "type" "workflow") (dict "queue" "instances-looks" "type" "activity") (dict "queue" "instances-aws" "type" "activity") (dict "queue" "instances-notifications" "type" "activity"))
  "loadbalancers" (list (dict "queue" "loadbalancers" "type" "workflow") (dict "queue" "loadbalancers-passes" "type" "activity"))
  "threescale" (list (dict "queue" "threescale" "type" "workflow") (dict "queue" "threescale-passes" "type" "activity"))
) . | toJson -}}
{{- end -}}

{{/* The text of a file with this release's names, namespace and group of resource claims filled in. */}}
{{- define "perdure.adapted" -}}
{{- $name := include "perdure.name" .root -}}
{{- $text := .text | replace "poolboy.gpte.redhat.com" (include "perdure.operatorDomain" .root) -}}
{{- $text = regexReplaceAll "(?m)(^\\s+namespace: )perdure$" $text (printf "${1}%s" .root.Release.Namespace) -}}
{{- regexReplaceAll "([ \\[])perdure-" $text (printf "${1}%s-" $name) -}}
{{- end -}}
