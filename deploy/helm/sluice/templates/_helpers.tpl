{{- define "sluice.name" -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "sluice.selectorLabels" -}}
app.kubernetes.io/name: sluice
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "sluice.labels" -}}
{{ include "sluice.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{/* Whether the nodes use the configuration of the chart. */}}
{{- define "sluice.ownConfig" -}}
{{- if and .Values.broker.existingConfigMap .Values.broker.existingSecret -}}
{{- fail "set broker.existingConfigMap or broker.existingSecret, not both" -}}
{{- end -}}
{{- if not (or .Values.broker.existingConfigMap .Values.broker.existingSecret) -}}yes{{- end -}}
{{- end -}}
