package main

import (
	"os"
	"path/filepath"
	"slices"
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

// topology is what docker-compose.yml comes to on this machine, written by hand: who changes that file changes this
// list.
func topology(root string) []process {
	worker := func(name string) process {
		return process{
			Name: name, Needs: []string{"namespace"}, Argv: []string{root + "/bin/worker"}, Grace: 10 * time.Minute,
			Env: map[string]string{
				"TEMPORAL_ADDRESS": "127.0.0.1:17233", "TEMPORAL_NAMESPACE": "default",
				"PASSBOOK_STATE_DIR": "/c/state", "PASSBOOK_RUN_ROOT": "/c/runs", "PASSBOOK_ENVIRONMENT": "cluster",
			},
		}
	}
	return []process{
		{
			Name: "postgres", Needs: nil, Grace: 20 * time.Second,
			Argv: []string{"postgres", "-D", "/c/postgres/data", "-c", "listen_addresses=127.0.0.1", "-c", "port=15432",
				"-c", "unix_socket_directories="},
			Env: map[string]string{
				"POSTGRES_USER": "temporal", "POSTGRES_PASSWORD": "temporal", "PGHOST": "127.0.0.1", "PGPORT": "15432",
			},
			Ready: probe{Command: []string{"sh", "-c", "pg_isready -U temporal"}},
		},
		{
			Name: "schema", Needs: []string{"postgres"}, Once: true, Grace: 20 * time.Second,
			Argv: []string{"/bin/sh", root + "/deploy/schema.sh"},
			Env: map[string]string{
				"SQL_PLUGIN": "postgres12", "SQL_HOST": "127.0.0.1", "SQL_PORT": "15432", "SQL_USER": "temporal",
				"SQL_PASSWORD": "temporal",
			},
		},
		{
			Name: "temporal", Needs: []string{"schema"}, Argv: []string{"temporal-server", "start"},
			Grace: 20 * time.Second,
			Env: map[string]string{
				"DB": "postgres12", "DB_PORT": "15432", "POSTGRES_SEEDS": "127.0.0.1", "POSTGRES_USER": "temporal",
				"POSTGRES_PWD":  "temporal",
				"SQL_MAX_CONNS": "10", "SQL_VIS_MAX_CONNS": "5", "NUM_HISTORY_SHARDS": "4", "BIND_ON_IP": "127.0.0.1",
				"LOG_LEVEL": "warn", "DYNAMIC_CONFIG_FILE_PATH": root + "/deploy/dynamicconfig.yaml",
				"FRONTEND_GRPC_PORT": "17233", "FRONTEND_HTTP_PORT": "17243", "FRONTEND_MEMBERSHIP_PORT": "16933",
				"HISTORY_GRPC_PORT":       "17234",
				"HISTORY_MEMBERSHIP_PORT": "16934", "MATCHING_GRPC_PORT": "17235", "MATCHING_MEMBERSHIP_PORT": "16935",
				"WORKER_GRPC_PORT":       "17239",
				"WORKER_MEMBERSHIP_PORT": "16939",
			},
			Ready: probe{Dial: "127.0.0.1:17233"},
		},
		{
			Name: "namespace", Needs: []string{"temporal"}, Once: true, Grace: 20 * time.Second,
			Argv: []string{"/bin/sh", root + "/deploy/namespace.sh"},
			Env: map[string]string{
				"TEMPORAL_ADDRESS": "127.0.0.1:17233", "TEMPORAL_NAMESPACE": "default", "RETENTION": "90d",
				"SEARCH_ATTRIBUTES": "PassbookPipeline=Keyword PassbookStatus=Keyword PassbookStage=Keyword " +
					"PassbookThread=Keyword PassbookSource=Keyword " +
					"PassbookCostUSD=Double PassbookScore=Double",
			},
		},
		{
			Name: "ui", Needs: []string{"namespace"}, Grace: 20 * time.Second,
			Argv: []string{"temporal-ui-server", "--root", "/c/ui", "--env", "docker", "start"},
			Env: map[string]string{
				"TEMPORAL_ADDRESS": "127.0.0.1:17233", "TEMPORAL_CORS_ORIGINS": "http://127.0.0.1:18233",
				"TEMPORAL_CSRF_COOKIE_INSECURE": "true",
				"TEMPORAL_DISABLE_NEWS_FETCH":   "true", "TEMPORAL_HIDE_LOGS": "true", "TEMPORAL_UI_PORT": "18233",
			},
			Ready: probe{Dial: "127.0.0.1:18233"},
		},
		worker("worker-1"), worker("worker-2"),
	}
}

func TestPlanMatchesComposeFile(t *testing.T) {
	root := checkout(t)
	got, err := plan(t.Context(), settings{Root: root, Dir: "/c", Offset: 10000, Workers: 2})
	require.NoError(t, err)
	want := topology(root)
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, want[i], got[i], want[i].Name)
	}
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
