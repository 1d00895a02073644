{{- define "spending.image" -}}
{{ .Values.image.repository }}:{{ .tag | default .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "spending.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* Pod of one role: the caller adds what is its own. */}}
{{- define "spending.pod" -}}
automountServiceAccountToken: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: { type: RuntimeDefault }
{{- with .Values.filesSecret }}
volumes:
  - name: files
    secret: { secretName: {{ . }}, defaultMode: 0440 }
{{- end }}
{{- end }}

{{- define "spending.container" -}}
image: {{ include "spending.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
envFrom:
  - secretRef: { name: {{ .Values.secret }} }
securityContext:
  readOnlyRootFilesystem: true
  allowPrivilegeEscalation: false
  capabilities: { drop: [ALL] }
{{- if .Values.filesSecret }}
volumeMounts:
  - { name: files, mountPath: /etc/spending, readOnly: true }
{{- end }}
{{- end }}

{{- define "spending.env" -}}
{{- range $name, $value := .Values.env }}
- name: {{ $name }}
  value: {{ required (printf "env.%s must be set" $name) $value | quote }}
{{- end }}
{{- end }}
