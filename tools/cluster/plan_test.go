package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func checkout(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	return root
}

// TestPlanMatchesComposeFile compares the processes with docker-compose.yml: a change of that file changes this test.
func TestPlanMatchesComposeFile(t *testing.T) {
	root := checkout(t)
	all, err := plan(t.Context(), settings{Root: root, Dir: "/c", Offset: 10000, Workers: 2})
	require.NoError(t, err)
	type service struct {
		needs, program, env string // the last one a variable of its environment
		once                bool
		ready               probe
	}
	want := map[string]service{
		"postgres": {"", "postgres", "PGPORT=15432", false, probe{Command: []string{"sh", "-c", "pg_isready -U temporal"}}},
		"schema":   {"postgres", "/bin/sh", "SQL_PORT=15432", true, probe{}},
		"temporal": {"schema", "temporal-server", "DYNAMIC_CONFIG_FILE_PATH=" + root + "/deploy/dynamicconfig.yaml", false,
			probe{Dial: "127.0.0.1:17233"}},
		"namespace": {"temporal", "/bin/sh", "TEMPORAL_ADDRESS=127.0.0.1:17233", true, probe{}},
		"ui": {"namespace", "temporal-ui-server", "TEMPORAL_CORS_ORIGINS=http://127.0.0.1:18233", false,
			probe{Dial: "127.0.0.1:18233"}},
		"worker-1": {"namespace", root + "/bin/worker", "PASSBOOK_STATE_DIR=/c/state", false, probe{}},
		"worker-2": {"namespace", root + "/bin/worker", "PASSBOOK_RUN_ROOT=/c/runs", false, probe{}},
	}
	var order []string
	for _, p := range all {
		order = append(order, p.Name)
		w := want[p.Name]
		key, _, _ := strings.Cut(w.env, "=")
		require.Equal(t, w, service{strings.Join(p.Needs, " "), p.Argv[0], key + "=" + p.Env[key], p.Once, p.Ready}, p.Name)
	}
	require.Equal(t, []string{"postgres", "schema", "temporal", "namespace", "ui", "worker-1", "worker-2"}, order)
	require.Equal(t, 10*time.Minute, all[5].Grace)
	require.Subset(t, all[0].Argv, []string{"/c/postgres/data", "listen_addresses=127.0.0.1", "port=15432"})
}

func TestUnknownServiceIsRefused(t *testing.T) {
	for name, row := range map[string]struct{ compose, want string }{
		"another image": {"services: {cache: {image: 'redis:7.4'}}",
			"service cache: no local program is known for the image redis:7.4"},
		"a circle": {"services: {a: {image: 'redis:7.4', depends_on: [b]}, b: {image: 'redis:7.4', depends_on: [a]}}",
			"cycle"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(root, "docker-compose.yml"),
				[]byte("name: x\n"+row.compose+"\n"), 0o600))
			_, err := plan(t.Context(), settings{Root: root})
			require.ErrorContains(t, err, row.want)
		})
	}
}

// Two clusters on one machine must not meet: every port moves with the offset.
func TestOffsetMovesEveryPort(t *testing.T) {
	root := checkout(t)
	one, err := plan(t.Context(), settings{Root: root, Dir: "/c", Offset: 10000, Workers: 1})
	require.NoError(t, err)
	two, err := plan(t.Context(), settings{Root: root, Dir: "/c", Offset: 20000, Workers: 1})
	require.NoError(t, err)
	for i := range one {
		shared := slices.DeleteFunc(ports(one[i]), func(p string) bool { return !slices.Contains(ports(two[i]), p) })
		require.Empty(t, shared, one[i].Name)
	}
}
