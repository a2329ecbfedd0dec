{{- define "monitor.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "monitor.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "monitor.tokenSecret" -}}
{{ .Values.tokenSecret | default (printf "%s-token" (include "monitor.name" .)) }}
{{- end }}

{{- define "monitor.tables" -}}
{{ .Values.storage.tables | default "/data/tables" }}
{{- end }}
{{- define "monitor.checkpoint" -}}
{{ .Values.storage.checkpoint | default "/data/checkpoint" }}
{{- end }}
{{- define "monitor.events" -}}
{{ .Values.storage.events | default "/data/events" }}
{{- end }}

{{- /* "true" if something is stored on the volume that all parts share. */}}
{{- define "monitor.hasVolume" -}}
{{- $job := and .Values.job.enabled (eq .Values.job.mode "local") }}
{{- if or (not .Values.storage.tables) (and $job (not .Values.storage.checkpoint)) (and .Values.collectors (not .Values.storage.events)) }}true{{ end }}
{{- end }}

{{- /* Names under which the pages are called: the service's and the ingress'. */}}
{{- define "monitor.hosts" -}}
{{- $name := printf "%s-serve" (include "monitor.name" .) }}
{{- $own := list $name (printf "%s.%s" $name .Release.Namespace) (printf "%s.%s.svc" $name .Release.Namespace) (printf "%s.%s.svc.cluster.local" $name .Release.Namespace) }}
{{- $hosts := concat $own .Values.serve.allowedHosts (ternary (list .Values.ingress.host) (list) .Values.ingress.enabled) }}
{{- join "," $hosts }}
{{- end }}

{{- /* What all containers have. The parts of a context: root, args, resources, secrets (further ones), cannotRead. */}}
{{- define "monitor.container" -}}
image: "{{ .root.Values.image.repository }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}"
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
args:
  {{- toYaml .args | nindent 2 }}
env:
  {{- include "monitor.env" .root | nindent 2 }}
{{- with concat .root.Values.secrets (.secrets | default list) }}
envFrom:
  {{- range . }}
  - secretRef: {name: {{ . }}}
  {{- end }}
{{- end }}
resources:
  {{- toYaml .resources | nindent 2 }}
securityContext:
  {{- include "monitor.containerSecurity" . | nindent 2 }}
volumeMounts:
  - {name: data, mountPath: /data}
  - {name: tmp, mountPath: /tmp}
  - {name: settings, mountPath: /etc/rebalance-monitor, readOnly: true}
{{- end }}

{{- define "monitor.env" -}}
- {name: REBALANCE_MONITOR_JOB__TABLES, value: {{ include "monitor.tables" . | quote }}}
- {name: REBALANCE_MONITOR_JOB__CHECKPOINT, value: {{ include "monitor.checkpoint" . | quote }}}
- {name: REBALANCE_MONITOR_METRICS__HOST, value: "0.0.0.0"}
- {name: REBALANCE_MONITOR_DASHBOARD__HOST, value: "0.0.0.0"}
- {name: REBALANCE_MONITOR_DASHBOARD__PORT, value: "8687"}
- {name: REBALANCE_MONITOR_DASHBOARD__ALLOWED_HOSTS, value: {{ include "monitor.hosts" . | quote }}}
- name: REBALANCE_MONITOR_DASHBOARD__TOKEN
  valueFrom: {secretKeyRef: {name: {{ include "monitor.tokenSecret" . }}, key: token}}
{{- end }}

{{- define "monitor.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "monitor.podSecurity" -}}
runAsNonRoot: true
runAsUser: 185
runAsGroup: 185
fsGroup: 185
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- /* What all pods have. The parts of a context: root, part, account. */}}
{{- define "monitor.pod" -}}
serviceAccountName: {{ include "monitor.name" .root }}{{ if .account }}-{{ .account }}{{ end }}
automountServiceAccountToken: {{ if .account }}true{{ else }}false{{ end }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
securityContext:
  {{- include "monitor.podSecurity" . | nindent 2 }}
{{- with .root.Values.nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations: {{ toJson . }}
{{- end }}
{{- if and (include "monitor.hasVolume" .root) .root.Values.job.enabled (ne .part "job") (eq .root.Values.persistence.accessMode "ReadWriteOnce") }}
affinity:
  # A volume that one node mounts: where the job is.
  podAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      - topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            {{- include "monitor.labels" .root | nindent 12 }}
            app.kubernetes.io/component: job
{{- end }}
volumes:
  - name: data
    {{- if include "monitor.hasVolume" .root }}
    persistentVolumeClaim: {claimName: {{ .root.Values.persistence.existingClaim | default (include "monitor.name" .root) }}}
    {{- else }}
    emptyDir: {}
    {{- end }}
  - {name: tmp, emptyDir: {}}
  - {name: settings, configMap: {name: {{ include "monitor.name" .root }}}}
{{- end }}

{{- define "monitor.podMetadata" -}}
labels:
  {{- include "monitor.labels" .root | nindent 2 }}
  app.kubernetes.io/component: {{ .part }}
annotations:
  # Other settings are another pod.
  rebalance-monitor/settings: {{ toJson .root.Values.settings | sha256sum | trunc 16 | quote }}
  {{- with .root.Values.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
