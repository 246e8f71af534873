package tools

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/require"
)

// TestComposeFile: each image has an exact version, and those of Temporal are the versions of the embedded server; ports
// are on loopback; the database has no default password, and its own network; a service waits for what it needs; a mounted file exists (Docker creates a folder in place of a
// missing one).
func TestComposeFile(t *testing.T) {
	load := func(env ...string) (*types.Project, error) {
		o, err := cli.NewProjectOptions([]string{"../docker-compose.yml"}, cli.WithInterpolation(true),
			cli.WithResolvedPaths(true), cli.WithEnv(env))
		require.NoError(t, err)
		return o.LoadProject(t.Context())
	}
	_, err := load()
	require.ErrorContains(t, err, "POSTGRES_PASSWORD", "there is no default password")
	p, err := load("POSTGRES_PASSWORD=of-the-test")
	require.NoError(t, err)
	for name, s := range p.Services { // an agent in the worker does not reach the database
		_, reaches := s.Networks["database"]
		require.Equal(t, slices.Contains([]string{"postgres", "schema", "temporal"}, name), reaches, name)
		require.False(t, s.Privileged || len(s.CapAdd) > 0 || s.NetworkMode == "host", name)
		for _, v := range s.Volumes {
			require.NotContains(t, v.Source, "docker.sock", name)
		}
		if name != "worker" {
			require.Empty(t, s.SecurityOpt, name)
		}
	}
	worker := p.Services["worker"] // whose container agents share: their sandbox has a network without the server
	require.Equal(t, "workspace", *worker.Environment["PASSBOOK_SANDBOX_MODE"])
	require.Equal(t, []string{"seccomp=unconfined", "apparmor=unconfined", "systempaths=unconfined"}, worker.SecurityOpt,
		"what bubblewrap needs to create namespaces")
	for _, file := range []string{"../Dockerfile", "../deploy/release/Dockerfile"} {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, tool := range []string{"bubblewrap", "passt", "iproute2"} {
			require.Regexp(t, `apt-get install .*\b`+tool+`\b`, string(raw), file)
		}
	}
	require.True(t, bool(p.Networks["database"].Internal))
	mod, err := os.ReadFile("../devserver/go.mod")
	require.NoError(t, err)
	version := func(module string) string {
		m := regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(module) + ` v(\S+)$`).FindSubmatch(mod)
		require.NotNil(t, m, module)
		return string(m[1])
	}
	server := version("go.temporal.io/server")
	for name, want := range map[string]struct{ image, needs, condition string }{
		"postgres":  {},
		"schema":    {"temporalio/admin-tools:" + server, "postgres", types.ServiceConditionHealthy},
		"temporal":  {"temporalio/server:" + server, "schema", types.ServiceConditionCompletedSuccessfully},
		"namespace": {"temporalio/admin-tools:" + server, "temporal", types.ServiceConditionHealthy},
		"ui": {"temporalio/ui:" + version("github.com/temporalio/ui-server/v2"), "namespace",
			types.ServiceConditionCompletedSuccessfully},
		"worker": {"", "namespace", types.ServiceConditionCompletedSuccessfully},
	} {
		s := p.Services[name]
		require.True(t, s.Build != nil || regexp.MustCompile(`:\d+\.\d+(\.\d+)?$`).MatchString(s.Image), name)
		if want.image != "" {
			require.Equal(t, want.image, s.Image)
		}
		if want.needs != "" {
			require.Equal(t, want.condition, s.DependsOn[want.needs].Condition, name)
		}
		if want.condition == types.ServiceConditionHealthy {
			require.NotNil(t, p.Services[want.needs].HealthCheck, want.needs)
		}
		for _, port := range s.Ports {
			require.Equal(t, "127.0.0.1", port.HostIP, name)
		}
		for _, v := range s.Volumes {
			if v.Type == types.VolumeTypeBind && filepath.Base(v.Source) != "runs" {
				info, err := os.Stat(v.Source)
				require.NoError(t, err, name)
				require.True(t, info.Mode().IsRegular() && v.ReadOnly, v.Source)
			}
		}
	}
}
