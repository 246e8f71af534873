package host

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/agent/gate"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/volume"
)

func TestFreeSpaceIsJudgedByFreeSpace(t *testing.T) {
	for _, row := range []struct {
		name    string
		on      volume.Info
		want    CheckState
		message string
	}{
		{"full", volume.Info{Mount: "/m", Free: 10 << 20, Size: 9 << 30}, Problem,
			"/s: the disk is full (file system /m: 10.0 MiB of 9.0 GiB free); runs pause there"},
		{"no inodes", volume.Info{Mount: "/m", Free: 7 << 30, Size: 9 << 30, NoFiles: true}, Problem,
			"/s: the disk is full (file system /m: 7.0 GiB of 9.0 GiB free, no inodes left); runs pause there"},
		{"little", volume.Info{Mount: "/m", Free: 512 << 20, Size: 9 << 30}, Warning,
			"/s: little space is left (file system /m: 512.0 MiB of 9.0 GiB free)"},
		{"enough", volume.Info{Mount: "/m", Free: 7 << 30, Size: 9 << 30}, OK,
			"/s is writable (file system /m: 7.0 GiB of 9.0 GiB free)"},
	} {
		t.Run(row.name, func(t *testing.T) {
			e := &examiner{}
			e.freeSpace(place{"store", "/s", "PASSBOOK_STORE"}, row.on)
			require.Equal(t, row.want, e.report.Checks[0].State)
			require.Equal(t, row.message, e.report.Checks[0].Detail)
			if row.want != OK {
				require.Equal(t, "free space in /m, or set PASSBOOK_STORE to a folder on another file system",
					e.report.Checks[0].Fix)
			}
		})
	}
}

func TestClockIsComparedWithTheServer(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, row := range []struct {
		name, address string
		output        []string
		want          CheckState
		message       string
	}{
		{"this machine", "localhost:7233", nil, OK, "the server is on this machine"},
		{"nothing said", "far:7233", nil, Unchecked, "the server does not report its time"},
		{"nonsense", "far:7233", []string{"soon"}, Unchecked,
			`the server reports no valid time: "soon"`},
		{"the same", "far:7233", []string{"Fri, 02 Jan 2026 03:04:02 GMT"}, OK, "as the server's"},
		{"ahead", "far:7233", []string{"Fri, 02 Jan 2026 03:03:05 GMT"}, Warning,
			"this machine's clock is 1m0s off the server's"},
		{"behind", "far:7233", []string{"Fri, 02 Jan 2026 03:05:05 GMT"}, Warning,
			"this machine's clock is -1m0s off the server's"},
	} {
		t.Run(row.name, func(t *testing.T) {
			e := &examiner{}
			e.clock(operations.Operator{Address: row.address}, row.output, now)
			require.Equal(t, row.want, e.report.Checks[0].State)
			require.Equal(t, row.message, e.report.Checks[0].Detail)
		})
	}
}

func TestBudgetOfTheDay(t *testing.T) {
	state := t.TempDir()
	g := gate.Open(state, "here", gate.Options{})
	reserve := func() {
		no, err := g.Acquire(t.Context(), gate.Need{Call: gate.Call{ID: "r/1", Delivery: 1}})
		require.NoError(t, err)
		require.Nil(t, no)
	}
	reserve()
	checks := func(b config.PerDay) []Check {
		e := examiner{DoctorOptions: DoctorOptions{Settings: config.Settings{StateDir: state, PerDay: b}, Program: "starter"}}
		e.costs()
		return e.report.Checks
	}
	require.Empty(t, checks(config.PerDay{}))
	for _, row := range []struct {
		calls  int
		state  CheckState
		detail string
	}{{2, OK, "0 of 2 calls, reserved: by 1 running call"}, {1, Warning, "it is used up, and calls wait until "}} {
		all := checks(config.PerDay{Calls: row.calls})
		require.Len(t, all, 1)
		require.Equal(t, row.state, all[0].State)
		require.Contains(t, all[0].Detail, row.detail)
	}
	file := filepath.Join(state, "gate.db")
	require.NoError(t, os.WriteFile(file, []byte("hello\n"), 0o600))
	all := checks(config.PerDay{})
	require.Len(t, all, 1)
	require.Equal(t, Warning, all[0].State)
	require.Contains(t, all[0].Detail, "gate.db: it is damaged")
	reserve()
	all = checks(config.PerDay{})
	require.Len(t, all, 1)
	require.Contains(t, all[0].Detail, "The damaged file is "+file+".damaged-")
	db, err := bbolt.Open(file, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(x *bbolt.Tx) error {
		return x.Bucket([]byte("meta")).Put([]byte("version"), []byte("7"))
	}))
	require.NoError(t, db.Close())
	require.Equal(t, Problem, checks(config.PerDay{})[1].State)
}
