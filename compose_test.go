package passbook_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/passbook-run/passbook/workflows"
)

// TestComposeFile: a worker that may not change the namespace depends on the search attributes that the set-up of the
// cluster registers, and a stop of the container waits for the calls of the worker.
func TestComposeFile(t *testing.T) {
	var compose struct {
		Services map[string]struct {
			Environment map[string]string
			Grace       string `yaml:"stop_grace_period"`
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "docker-compose.yml")), &compose))
	var wanted []string
	for name, kind := range workflows.SearchAttributes() {
		wanted = append(wanted, name+"="+kind.String())
	}
	registered := compose.Services["namespace"].Environment["SEARCH_ATTRIBUTES"]
	require.ElementsMatch(t, wanted, strings.Fields(registered))
	require.Contains(t, read(t, "Dockerfile"), " PASSBOOK_DRAIN="+compose.Services["worker"].Grace+"\n")
}
