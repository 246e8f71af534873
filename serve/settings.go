package serve

import (
	"cmp"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"

	"github.com/passbook-run/passbook/config"
)

// part is one setting of a profile.
type part struct {
	name, variable, unset string // unset: what is shown where there is no value; empty: the row is left out
	secret                bool
	get                   func(envconfig.ClientConfigProfile) string
}

func parts() []part {
	tls := func(get func(envconfig.ClientConfigTLS) string) func(envconfig.ClientConfigProfile) string {
		return func(p envconfig.ClientConfigProfile) string {
			if p.TLS == nil {
				return ""
			}
			return get(*p.TLS)
		}
	}
	codec := func(get func(envconfig.ClientConfigCodec) string) func(envconfig.ClientConfigProfile) string {
		return func(p envconfig.ClientConfigProfile) string {
			if p.Codec == nil {
				return ""
			}
			return get(*p.Codec)
		}
	}
	return []part{
		{"address", "TEMPORAL_ADDRESS", "(the embedded server of this machine)", false, func(p envconfig.ClientConfigProfile) string { return p.Address }},
		{"namespace", "TEMPORAL_NAMESPACE", client.DefaultNamespace, false, func(p envconfig.ClientConfigProfile) string { return p.Namespace }},
		{"api_key", "TEMPORAL_API_KEY", "", true, func(p envconfig.ClientConfigProfile) string { return p.APIKey }},
		{"authority", "TEMPORAL_CLIENT_AUTHORITY", "", false, func(p envconfig.ClientConfigProfile) string { return p.Authority }},
		{"tls", "TEMPORAL_TLS", "false", false, usesTLS},
		{"tls_client_cert_path", "TEMPORAL_TLS_CLIENT_CERT_PATH", "", false, tls(func(t envconfig.ClientConfigTLS) string { return t.ClientCertPath })},
		{"tls_client_cert_data", "TEMPORAL_TLS_CLIENT_CERT_DATA", "", true, tls(func(t envconfig.ClientConfigTLS) string { return string(t.ClientCertData) })},
		{"tls_client_key_path", "TEMPORAL_TLS_CLIENT_KEY_PATH", "", false, tls(func(t envconfig.ClientConfigTLS) string { return t.ClientKeyPath })},
		{"tls_client_key_data", "TEMPORAL_TLS_CLIENT_KEY_DATA", "", true, tls(func(t envconfig.ClientConfigTLS) string { return string(t.ClientKeyData) })},
		{"tls_server_ca_cert_path", "TEMPORAL_TLS_SERVER_CA_CERT_PATH", "", false, tls(func(t envconfig.ClientConfigTLS) string { return t.ServerCACertPath })},
		{"tls_server_ca_cert_data", "TEMPORAL_TLS_SERVER_CA_CERT_DATA", "", true, tls(func(t envconfig.ClientConfigTLS) string { return string(t.ServerCACertData) })},
		{"tls_server_name", "TEMPORAL_TLS_SERVER_NAME", "", false, tls(func(t envconfig.ClientConfigTLS) string { return t.ServerName })},
		{"tls_disable_host_verification", "TEMPORAL_TLS_DISABLE_HOST_VERIFICATION", "", false, tls(unverified)},
		{"codec_endpoint", "TEMPORAL_CODEC_ENDPOINT", "", false, codec(func(c envconfig.ClientConfigCodec) string { return c.Endpoint })},
		{"codec_auth", "TEMPORAL_CODEC_AUTH", "", true, codec(func(c envconfig.ClientConfigCodec) string { return c.Auth })},
	}
}

func usesTLS(p envconfig.ClientConfigProfile) string {
	if p.TLS == nil && p.APIKey == "" {
		return ""
	}
	return strconv.FormatBool(p.TLS == nil || !p.TLS.Disabled)
}

func unverified(t envconfig.ClientConfigTLS) string {
	if !t.DisableHostVerification {
		return ""
	}
	return "true"
}

// Explain gives the settings of the connection that [FindConnection] finds, and where each comes from. Secrets are masked.
func Explain() ([]config.Setting, error) {
	all, err := envconfig.LoadClientConfigProfile(envconfig.LoadClientConfigProfileOptions{})
	if err != nil {
		return nil, err
	}
	filed, err := envconfig.LoadClientConfigProfile(envconfig.LoadClientConfigProfileOptions{DisableEnv: true})
	if err != nil {
		return nil, err
	}
	out := []config.Setting{
		chosen("profile", "TEMPORAL_PROFILE", envconfig.DefaultConfigFileProfile),
		chosen("config_file", "TEMPORAL_CONFIG_FILE", envconfig.DefaultConfigFilePath()),
	}
	place := out[1].Value + " [profile." + out[0].Value + "]"
	for _, p := range parts() {
		row := config.Setting{Name: p.name, Value: p.get(all), Source: config.FromDefault}
		switch value, set := os.LookupEnv(p.variable); {
		case set && (value != "" || p.get(filed) != ""):
			row.Source, row.From = config.FromEnvironment, p.variable
		case p.get(filed) != "":
			row.Source, row.From = config.FromFile, place
		case row.Value != "": // it follows from another one
			row.From = "follows from the others"
		}
		if row.Value = cmp.Or(shown(p.secret, row.Value), p.unset); row.Value != "" {
			out = append(out, row)
		}
	}
	return append(out, metadata(all, filed, place)...), nil
}

// chosen is a setting that says where the others are.
func chosen(name, variable, unset string) config.Setting {
	if value := os.Getenv(variable); value != "" {
		return config.Setting{Name: name, Value: value, Source: config.FromEnvironment, From: variable}
	}
	return config.Setting{Name: name, Value: unset, Source: config.FromDefault}
}

func shown(secret bool, value string) string {
	if secret && value != "" {
		return config.Mask
	}
	return config.Masked(value)
}

// metadata are the headers of every request; their values may be secrets.
func metadata(all, filed envconfig.ClientConfigProfile, place string) []config.Setting {
	var out []config.Setting
	for _, key := range slices.Sorted(maps.Keys(all.GRPCMeta)) {
		row := config.Setting{Name: "grpc_meta." + key, Value: config.Mask, Source: config.FromFile, From: place}
		if filed.GRPCMeta[key] != all.GRPCMeta[key] {
			row.Source, row.From = config.FromEnvironment, "TEMPORAL_GRPC_META_"+strings.ToUpper(strings.ReplaceAll(key, "-", "_"))
		}
		out = append(out, row)
	}
	return out
}
