package view_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

func TestPercent(t *testing.T) {
	for _, row := range []struct{ done, total, percent, of40 int }{
		{0, 56, 0, 0}, {34, 56, 61, 24}, {35, 56, 63, 25}, {40, 56, 71, 28}, {55, 56, 98, 39}, {56, 56, 100, 40},
		{0, 0, 0, 0},
	} {
		percent := run.Percent(row.done, row.total)
		require.Equal(t, row.percent, percent, "%d of %d", row.done, row.total)
		require.Equal(t, row.of40, view.Bar(percent, 40), "%d of %d", row.done, row.total)
	}
}

func TestWeighted(t *testing.T) {
	s := func(all ...int) []time.Duration {
		var out []time.Duration
		for _, n := range all {
			out = append(out, time.Duration(n)*time.Second)
		}
		return out
	}
	require.Nil(t, view.Weighted(s(60, 60)), "two passes are too few")
	require.Equal(t, 40*time.Second, *view.Weighted(s(10, 40, 50)), "(10·1 + 40·2 + 50·3) / 6")
	require.Equal(t, 51*time.Second, *view.Weighted(s(900, 9, 18, 27, 36, 45, 54, 63, 72)),
		"the last eight: 9 · (1·1 + 2·2 + … + 8·8) / 36 = 9 · 204 / 36")
}

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		4*time.Hour + 23*time.Minute + 59*time.Second: "4h 23m", time.Hour: "1h 0m", 59*time.Minute +
			59*time.Second: "59m 59s", 4*time.Minute + 32*time.Second: "4m 32s",
		time.Minute: "1m 0s", 42*time.Second + 900*time.Millisecond: "42s", 0: "0s", -time.Second: "0s",
	} {
		require.Equal(t, want, view.Duration(d))
	}
}

func TestPauses(t *testing.T) {
	at := func(clock string) string { return "2026-01-02T" + clock + ":00.000Z" }
	moment := func(clock string) time.Time {
		m, err := time.Parse(time.RFC3339, at(clock))
		require.NoError(t, err)
		return m
	}
	rows := func(pairs ...string) []rundir.DecisionRow {
		var out []rundir.DecisionRow
		for i := 0; i < len(pairs); i += 2 {
			out = append(out, rundir.DecisionRow{TS: at(pairs[i]), Decision: pairs[i+1]})
		}
		return out
	}
	for name, row := range map[string]struct {
		log  []rundir.DecisionRow
		want time.Duration // paused from 10:00 to 14:00
	}{
		"never": {
			rows("10:00", "fresh-start", "10:00", "execute-pass", "11:00", "accept-output"), 0,
		},
		"a pause, with the budget raised": {
			rows("10:00", "fresh-start", "11:00", "pause-pipeline", "11:10", "set-budget", "11:30", "resume", "11:30",
				"skip-pass"), 30 * time.Minute,
		},
		"a pause that lasts": {rows("10:00", "fresh-start", "13:00", "pause-pipeline"), time.Hour},
		"a question, then a refused answer": {
			rows("10:00", "fresh-start", "11:00", "ask", "11:10", "refuse-decide", "11:45", "decide-continue"),
			45 * time.Minute,
		},
		"over, and taken up again": {
			rows("10:00", "fresh-start", "11:00", "end-pipeline", "12:00", "resume", "12:00", "execute-pass"),
			time.Hour,
		},
		"interrupted without a word": {
			rows("10:00", "fresh-start", "11:00", "execute-pass", "13:30", "resume", "13:30", "skip-pass"),
			150 * time.Minute,
		},
	} {
		require.Equal(t, row.want, view.PausedTime(view.Pauses(row.log), moment("10:00"), moment("14:00")), name)
	}
	twice := []view.Pause{{From: moment("09:00"), To: moment("11:00")}, {From: moment("10:30"), To: moment("11:30")}}
	require.Equal(t, 90*time.Minute, view.PausedTime(twice, moment("10:00"), moment("14:00")),
		"only from 10:00 on, and what overlaps once")
}
