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

// TestImagesArePinned: each image has an exact version, and those of Temporal are the versions of the embedded server,
// so that a run sees no difference.
func TestImagesArePinned(t *testing.T) {
	mod, err := os.ReadFile("../devserver/go.mod")
	require.NoError(t, err)
	version := func(module string) string {
		m := regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(module) + ` v(\S+)$`).FindSubmatch(mod)
		require.NotNil(t, m, module)
		return string(m[1])
	}
	p := project(t)
	server := version("go.temporal.io/server")
	for name, image := range map[string]string{
		"temporal": "temporalio/server:" + server, "schema": "temporalio/admin-tools:" + server,
		"namespace": "temporalio/admin-tools:" + server,
		"ui":        "temporalio/ui:" + version("github.com/temporalio/ui-server/v2"),
	} {
		require.Equal(t, image, p.Services[name].Image)
	}
	for name, s := range p.Services {
		require.True(t, s.Build != nil || regexp.MustCompile(`:\d+\.\d+(\.\d+)?$`).MatchString(s.Image), name)
	}
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

func TestServicesWaitForEachOther(t *testing.T) {
	p := project(t)
	for name, row := range map[string]struct{ needs, condition string }{
		"schema":    {"postgres", types.ServiceConditionHealthy},
		"temporal":  {"schema", types.ServiceConditionCompletedSuccessfully},
		"namespace": {"temporal", types.ServiceConditionHealthy},
		"ui":        {"namespace", types.ServiceConditionCompletedSuccessfully},
		"worker":    {"namespace", types.ServiceConditionCompletedSuccessfully},
	} {
		require.Equal(t, row.condition, p.Services[name].DependsOn[row.needs].Condition, name)
		if row.condition == types.ServiceConditionHealthy {
			require.NotNil(t, p.Services[row.needs].HealthCheck, row.needs)
		}
	}
}

// Docker creates an empty folder in place of a mounted file that is missing.
func TestMountedFilesExist(t *testing.T) {
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
