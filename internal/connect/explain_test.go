package connect_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/connect"
)

func TestExplainShowsDefaults(t *testing.T) {
	settings(t, nil)
	all := must(connect.Explain())(t)
	require.Equal(t, []config.Setting{
		{Name: "profile", Value: "default", Source: "default"},
		{Name: "config_file", Value: all[1].Value, Source: "default"},
		{Name: "address", Value: "(the embedded server of this machine)", Source: "default"},
		{Name: "namespace", Value: "default", Source: "default"},
		{Name: "tls", Value: "false", Source: "default"},
	}, all)
	require.Equal(t, "temporal.toml", filepath.Base(all[1].Value))
}

func TestExplainShowsSourcesAndMasksSecrets(t *testing.T) {
	file := filepath.Join(t.TempDir(), "temporal.toml")
	require.NoError(t, os.WriteFile(file, []byte(`[profile.cloud]
address = "of-the-file:7233"
namespace = "of-the-file"
[profile.cloud.grpc_meta]
authorization = "of-the-file"
[profile.cloud.tls]
server_name = "inside"
client_key_data = "secret-key"
`), 0o600))
	settings(t, map[string]string{
		"TEMPORAL_CONFIG_FILE": file, "TEMPORAL_PROFILE": "cloud", "TEMPORAL_NAMESPACE": "of-the-variable",
		"TEMPORAL_API_KEY":            "secret-key",
		"TEMPORAL_GRPC_META_MY_TOKEN": "secret-key",
	})
	all := must(connect.Explain())(t)
	place := file + " [profile.cloud]"
	require.Equal(t, []config.Setting{
		{Name: "profile", Value: "cloud", Source: "environment", From: "TEMPORAL_PROFILE"},
		{Name: "config_file", Value: file, Source: "environment", From: "TEMPORAL_CONFIG_FILE"},
		{Name: "address", Value: "of-the-file:7233", Source: "file", From: place},
		{Name: "namespace", Value: "of-the-variable", Source: "environment", From: "TEMPORAL_NAMESPACE"},
		{Name: "api_key", Value: "********", Source: "environment", From: "TEMPORAL_API_KEY"},
		{Name: "tls", Value: "true", Source: "file", From: place},
		{Name: "tls_client_key_data", Value: "********", Source: "file", From: place},
		{Name: "tls_server_name", Value: "inside", Source: "file", From: place},
		{Name: "grpc_meta.authorization", Value: "********", Source: "file", From: place},
		{Name: "grpc_meta.my-token", Value: "********", Source: "environment", From: "TEMPORAL_GRPC_META_MY_TOKEN"},
	}, all)
	require.NotContains(t, fmt.Sprint(all), "secret-key")
}

func TestExplainShowsThatAnAPIKeyEnablesTLS(t *testing.T) {
	settings(t, map[string]string{"TEMPORAL_API_KEY": "secret-key"})
	all := must(connect.Explain())(t)
	require.Contains(t, all, config.Setting{Name: "tls", Value: "true", Source: "default",
		From: "follows from the others"})
}
