package tools

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/require"
)

func project(t *testing.T) *types.Project {
	t.Helper()
	o, err := cli.NewProjectOptions([]string{"../docker-compose.yml"}, cli.WithInterpolation(true),
		cli.WithResolvedPaths(true))
	require.NoError(t, err)
	p, err := o.LoadProject(t.Context())
	require.NoError(t, err)
	return p
}

func TestEveryImageIsPinned(t *testing.T) {
	exact := regexp.MustCompile(`:\d+\.\d+(\.\d+)?$`)
	for name, s := range project(t).Services {
		if s.Build != nil {
			continue
		}
		require.Regexp(t, exact, s.Image, name)
	}
}

// The cluster is the server that is embedded, so that a run sees no difference.
func TestVersionsAreThoseEmbedded(t *testing.T) {
	mod, err := os.ReadFile("../devserver/go.mod")
	require.NoError(t, err)
	version := func(module string) string {
		m := regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(module) + ` v(\S+)$`).FindSubmatch(mod)
		require.NotNil(t, m, module)
		return string(m[1])
	}
	p := project(t)
	server := version("go.temporal.io/server")
	require.Equal(t, "temporalio/server:"+server, p.Services["temporal"].Image)
	require.Equal(t, "temporalio/admin-tools:"+server, p.Services["schema"].Image)
	require.Equal(t, "temporalio/admin-tools:"+server, p.Services["namespace"].Image)
	require.Equal(t, "temporalio/ui:"+version("github.com/temporalio/ui-server/v2"), p.Services["ui"].Image)
}

func TestPortsAreOnLoopback(t *testing.T) {
	open := 0
	for name, s := range project(t).Services {
		for _, port := range s.Ports {
			require.Equal(t, "127.0.0.1", port.HostIP, name)
			open++
		}
	}
	require.Equal(t, 2, open)
}

func TestStartOrder(t *testing.T) {
	for name, row := range map[string]struct{ needs, condition string }{
		"schema":    {"postgres", types.ServiceConditionHealthy},
		"temporal":  {"schema", types.ServiceConditionCompletedSuccessfully},
		"namespace": {"temporal", types.ServiceConditionHealthy},
		"ui":        {"namespace", types.ServiceConditionCompletedSuccessfully},
		"worker":    {"namespace", types.ServiceConditionCompletedSuccessfully},
	} {
		t.Run(name, func(t *testing.T) {
			p := project(t)
			require.Equal(t, row.condition, p.Services[name].DependsOn[row.needs].Condition)
			if row.condition == types.ServiceConditionHealthy {
				require.NotNil(t, p.Services[row.needs].HealthCheck, "nothing would ever find it healthy")
			}
		})
	}
}

// Docker makes an empty folder of a mounted file that is missing, and goes on.
func TestMountedFilesAreThere(t *testing.T) {
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	files := 0
	for name, s := range project(t).Services {
		for _, v := range s.Volumes {
			if v.Type != types.VolumeTypeBind || v.Source == filepath.Join(root, "runs") {
				continue
			}
			info, err := os.Stat(v.Source)
			require.NoError(t, err, name)
			require.True(t, info.Mode().IsRegular(), v.Source)
			require.True(t, v.ReadOnly, v.Source)
			files++
		}
	}
	require.Equal(t, 3, files)
}
