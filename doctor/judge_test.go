package doctor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/operate"
)

func TestRoom(t *testing.T) {
	for _, row := range []struct {
		name string
		free uint64
		want State
		says string
	}{
		{"full", 10 << 20, Problem, "the disk is full (0.01 GiB free)"},
		{"little", 512 << 20, Warning, "only 0.50 GiB are free"},
		{"enough", 7 << 30, OK, "is writable, 7 GiB free"},
	} {
		t.Run(row.name, func(t *testing.T) {
			e := &examiner{}
			e.room("store", "/s", "PASSBOOK_STORE", row.free)
			require.Equal(t, row.want, e.report.Checks[0].State)
			require.Contains(t, e.report.Checks[0].Detail, row.says)
		})
	}
}

func TestClock(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, row := range []struct {
		name, address string
		said          []string
		want          State
		says          string
	}{
		{"this machine", "localhost:7233", nil, OK, "this machine"},
		{"nothing said", "far:7233", nil, Unchecked, "does not tell its time"},
		{"nonsense", "far:7233", []string{"soon"}, Unchecked, `"soon"`},
		{"the same", "far:7233", []string{"Fri, 02 Jan 2026 03:04:02 GMT"}, OK, "as the server's"},
		{"ahead", "far:7233", []string{"Fri, 02 Jan 2026 03:03:05 GMT"}, Warning, "1m0s off"},
		{"behind", "far:7233", []string{"Fri, 02 Jan 2026 03:05:05 GMT"}, Warning, "-1m0s off"},
	} {
		t.Run(row.name, func(t *testing.T) {
			e := &examiner{}
			e.clock(operate.Operator{Address: row.address}, row.said, now)
			require.Equal(t, row.want, e.report.Checks[0].State)
			require.Contains(t, e.report.Checks[0].Detail, row.says)
		})
	}
}
