{{/* The name of every object. */}}
{{- define "redrive.fullname" -}}
{{- default .Release.Name .Values.fullnameOverride | trunc 55 | trimSuffix "-" -}}
{{- end -}}

{{/* What selects the pods: never changes over upgrades. */}}
{{- define "redrive.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "redrive.labels" -}}
{{ include "redrive.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "redrive.image" -}}
{{- with .Values.redrive.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The configuration file: the values' own text, untouched, and the drain grace at its end. */}}
{{- define "redrive.config" -}}
{{- $config := fromYaml .Values.redrive.config -}}
{{- if or (hasKey $config "Error") (hasPrefix "{" (trim .Values.redrive.config)) -}}
{{- fail (printf "redrive.config is not a YAML block mapping: %v" (get $config "Error")) -}}
{{- end -}}
{{- if hasKey $config "drain" -}}
{{- fail "redrive.config may not have drain: set redrive.drainGraceSeconds" -}}
{{- end -}}
{{- range $key, $address := dict "admin" "127.0.0.1:15091" "public" "0.0.0.0:15090" -}}
{{- if ne $address (dig "listen" $key $address $config) -}}
{{- fail (printf "redrive.config: listen.%s must stay at %s in a pod" $key $address) -}}
{{- end -}}
{{- end -}}
{{- $engine := dig "engines" "redis" dict $config | default dict -}}
{{- if eq "local_share" (dig "on_loss" "closed" $engine) -}}
{{- $pods := mul 2 .Values.replicas | int -}}
{{- $most := dig "local_share" "max_pods" 10 $engine | int -}}
{{- if lt $most $pods -}}
{{- fail (printf "redrive.config: engines.redis.local_share.max_pods (%d) must be at least twice replicas (%d): pods still drain while their successors run, and each sends its share" $most $pods) -}}
{{- end -}}
{{- end -}}
{{ trimSuffix "\n" .Values.redrive.config }}
drain: {grace: {{ int .Values.redrive.drainGraceSeconds }}s}
{{- end -}}

{{/* Where the application reaches the sidecar. */}}
{{- define "redrive.address" -}}
{{- dig "listen" "grpc" "127.0.0.1:50051" (fromYaml .Values.redrive.config) -}}
{{- end -}}

{{/* Kubernetes must wait longer than the sidecar: 5 s more to settle the ledger and flush. */}}
{{- define "redrive.terminationGracePeriodSeconds" -}}
{{- $grace := int .Values.terminationGracePeriodSeconds -}}
{{- $drain := int .Values.redrive.drainGraceSeconds -}}
{{- if lt $grace (add $drain 5 | int) -}}
{{- fail (printf "terminationGracePeriodSeconds (%d) must be at least redrive.drainGraceSeconds (%d) + 5: the sidecar would be killed while generations still finish" $grace $drain) -}}
{{- end -}}
{{- $grace -}}
{{- end -}}

{{/* The native sidecar: an init container that keeps running, started before the application and
ended after it. */}}
{{- define "redrive.container" -}}
name: redrive
image: {{ include "redrive.image" . | quote }}
imagePullPolicy: {{ default "IfNotPresent" .Values.redrive.image.pullPolicy }}
restartPolicy: Always
args: [serve, --config, /etc/redrive/config/redrive.yaml]
ports:
  - name: redrive-public
    containerPort: 15090
# The application starts once this has passed.
startupProbe:
  httpGet: {path: /readyz, port: redrive-public}
  periodSeconds: 1
  failureThreshold: 30
# Off while draining; never depends on a provider.
readinessProbe:
  httpGet: {path: /readyz, port: redrive-public}
  periodSeconds: 5
livenessProbe:
  httpGet: {path: /healthz, port: redrive-public}
  periodSeconds: 10
{{- if .Values.redrive.drainOnPodEnd }}
lifecycle:
  # Runs when the pod begins to end, together with the application's own hook.
  preStop:
    exec:
      command: [/usr/local/bin/redrive, drain]
{{- end }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  capabilities:
    drop: [ALL]
{{- with .Values.redrive.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumeMounts:
  - name: redrive-config
    mountPath: /etc/redrive/config
    readOnly: true
  {{- if .Values.redrive.secretName }}
  - name: redrive-secrets
    mountPath: /etc/redrive/secrets
    readOnly: true
  {{- end }}
{{- end -}}

{{- define "redrive.volumes" -}}
- name: redrive-config
  configMap:
    name: {{ include "redrive.fullname" . }}
{{- with .Values.redrive.secretName }}
- name: redrive-secrets
  secret:
    secretName: {{ . }}
    # Readable by the pod's group (fsGroup) only.
    defaultMode: 0440
{{- end }}
{{- end -}}
