package cli

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/host"
)

func TestServerStatusReportsTheKeeper(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)
	for name, row := range map[string]struct {
		keeper  *host.Keeper
		message string
	}{
		"none":  {nil, "Keeper    not running: nothing restarts server and worker if they crash\n"},
		"quiet": {&host.Keeper{Started: at}, "Keeper    pid 0, since 2026-01-02 03:04:05\n"},
		"it restarts": {&host.Keeper{Started: at, Server: host.Restarts{Total: 2, Last: at}},
			"Keeper    pid 0, since 2026-01-02 03:04:05\n          server restarted 2 times, last at 2026-01-02 " +
				"03:04:05\n"},
		"it fails": {
			&host.Keeper{Started: at, Worker: host.Restarts{Total: 12, InRow: 10, Last: at, Error: "no such file"}},
			"Keeper    pid 0, since 2026-01-02 03:04:05\n          worker restart 10 failed at 2026-01-02 03:04:05: " +
				"no such file. Fix the cause; the keeper tries again every minute\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			(&app{out: &out}).printKeeper(row.keeper)
			require.Equal(t, row.message, out.String())
		})
	}
}
