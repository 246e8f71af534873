package connect

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

// profile is what envconfig read.
type profile = envconfig.ClientConfigProfile

// part is one setting of a profile.
type part struct {
	name, variable string
	unset          string // shown if the setting has no value; empty: the row is omitted
	secret         bool
	get            func(profile) string
}

func parts() []part {
	const embedded = "(the embedded server of this machine)"
	return slices.Concat([]part{
		{"address", "TEMPORAL_ADDRESS", embedded, false, func(p profile) string { return p.Address }},
		{"namespace", "TEMPORAL_NAMESPACE", client.DefaultNamespace, false,
			func(p profile) string { return p.Namespace }},
		{"api_key", "TEMPORAL_API_KEY", "", true, func(p profile) string { return p.APIKey }},
		{"authority", "TEMPORAL_CLIENT_AUTHORITY", "", false, func(p profile) string { return p.Authority }},
		{"tls", "TEMPORAL_TLS", "false", false, usesTLSIn},
	}, tlsParts(), []part{
		codecPart("endpoint", false, func(c envconfig.ClientConfigCodec) string { return c.Endpoint }),
		codecPart("auth", true, func(c envconfig.ClientConfigCodec) string { return c.Auth }),
	})
}

func tlsParts() []part {
	type settings = envconfig.ClientConfigTLS
	return []part{
		tlsPart("client_cert_path", false, func(t settings) string { return t.ClientCertPath }),
		tlsPart("client_cert_data", true, func(t settings) string { return string(t.ClientCertData) }),
		tlsPart("client_key_path", false, func(t settings) string { return t.ClientKeyPath }),
		tlsPart("client_key_data", true, func(t settings) string { return string(t.ClientKeyData) }),
		tlsPart("server_ca_cert_path", false, func(t settings) string { return t.ServerCACertPath }),
		tlsPart("server_ca_cert_data", true, func(t settings) string { return string(t.ServerCACertData) }),
		tlsPart("server_name", false, func(t settings) string { return t.ServerName }),
		tlsPart("disable_host_verification", false, func(t settings) string {
			if !t.DisableHostVerification {
				return ""
			}
			return "true"
		}),
	}
}

func tlsPart(name string, secret bool, get func(envconfig.ClientConfigTLS) string) part {
	return part{"tls_" + name, "TEMPORAL_TLS_" + strings.ToUpper(name), "", secret, func(p profile) string {
		if p.TLS == nil {
			return ""
		}
		return get(*p.TLS)
	}}
}

func codecPart(name string, secret bool, get func(envconfig.ClientConfigCodec) string) part {
	return part{"codec_" + name, "TEMPORAL_CODEC_" + strings.ToUpper(name), "", secret, func(p profile) string {
		if p.Codec == nil {
			return ""
		}
		return get(*p.Codec)
	}}
}

func usesTLSIn(p profile) string {
	if p.TLS == nil && p.APIKey == "" {
		return ""
	}
	return strconv.FormatBool(p.TLS == nil || !p.TLS.Disabled)
}

// Explain returns the settings of the connection that [Find] finds, each with its source. Secrets are masked.
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
		locator("profile", "TEMPORAL_PROFILE", envconfig.DefaultConfigFileProfile),
		locator("config_file", "TEMPORAL_CONFIG_FILE", envconfig.DefaultConfigFilePath()),
	}
	place := out[1].Value + " [profile." + out[0].Value + "]"
	for _, p := range parts() {
		row := config.Setting{Name: p.name, Value: p.get(all), Source: config.FromDefault}
		switch value, set := os.LookupEnv(p.variable); {
		case set && (value != "" || p.get(filed) != ""):
			row.Source, row.From = config.FromEnvironment, p.variable
		case p.get(filed) != "":
			row.Source, row.From = config.FromFile, place
		case row.Value != "": // derived from another setting
			row.From = "follows from the others"
		}
		if row.Value = cmp.Or(masked(p.secret, row.Value), p.unset); row.Value != "" {
			out = append(out, row)
		}
	}
	return append(out, metadata(all, filed, place)...), nil
}

// locator is a setting that selects the file or the profile of the others.
func locator(name, variable, unset string) config.Setting {
	if value := os.Getenv(variable); value != "" {
		return config.Setting{Name: name, Value: value, Source: config.FromEnvironment, From: variable}
	}
	return config.Setting{Name: name, Value: unset, Source: config.FromDefault}
}

func masked(secret bool, value string) string {
	if secret && value != "" {
		return config.Mask
	}
	return config.Masked(value)
}

// metadata returns the headers of every request. Their values may be secrets, so all are masked.
func metadata(all, filed profile, place string) []config.Setting {
	var out []config.Setting
	for _, key := range slices.Sorted(maps.Keys(all.GRPCMeta)) {
		row := config.Setting{Name: "grpc_meta." + key, Value: config.Mask, Source: config.FromFile, From: place}
		if filed.GRPCMeta[key] != all.GRPCMeta[key] {
			row.Source = config.FromEnvironment
			row.From = "TEMPORAL_GRPC_META_" + strings.ToUpper(strings.ReplaceAll(key, "-", "_"))
		}
		out = append(out, row)
	}
	return out
}

// UseServer lets the temporal CLI and tctl of a terminal reach the embedded server. program is the starter.
// With a server in TEMPORAL_ADDRESS or in a profile it changes nothing.
func UseServer(program string) string { return `eval "$(` + program + ` server env)"` }
