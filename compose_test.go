package passbook_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/passbook-run/passbook/workflows"
)

// A worker that may not change the namespace depends on what the cluster's set-up made known to it.
func TestClusterHasSearchAttributes(t *testing.T) {
	var compose struct {
		Services map[string]struct{ Environment map[string]string }
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "docker-compose.yml")), &compose))
	output := map[string]string{}
	for attribute := range strings.FieldsSeq(compose.Services["namespace"].Environment["SEARCH_ATTRIBUTES"]) {
		name, kind, _ := strings.Cut(attribute, "=")
		output[name] = kind
	}
	wanted := map[string]string{}
	for name, kind := range workflows.SearchAttributes() {
		wanted[name] = kind.String()
	}
	require.Equal(t, wanted, output)
}

// A stop of the container must not end the worker before it has waited for its calls.
func TestContainerGracePeriodCoversWorker(t *testing.T) {
	var compose struct {
		Services map[string]struct {
			Grace string `yaml:"stop_grace_period"`
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "docker-compose.yml")), &compose))
	require.Contains(t, read(t, "Dockerfile"), " PASSBOOK_DRAIN="+compose.Services["worker"].Grace+"\n")
}
