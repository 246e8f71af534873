package costs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
)

// TestSmallBudgets: a budget of one is a bound, and covers what it has.
func TestSmallBudgets(t *testing.T) {
	for _, row := range []struct {
		budget Budget
		call   Call
		covers bool
		text   string
	}{
		{Budget{USD: 1}, Call{USD: 1.5}, false, "$0.00 of $1.00; it needs about $1.50"},
		{Budget{USD: 1}, Call{USD: 0.5}, true, "$0.00 of $1.00"},
		{Budget{USD: 0.5}, Call{USD: 0.5}, true, "$0.00 of $0.50"},
		{Budget{Tokens: 1}, Call{Tokens: 2}, false, "0 of 1 tokens; it needs about 2 tokens"},
		{Budget{Tokens: 1}, Call{Tokens: 1}, true, "0 of 1 tokens"},
		{Budget{Calls: 1}, Call{}, true, "0 of 1 call"},
	} {
		require.Equal(t, row.covers, Day{}.covers(row.budget, row.call), row.text)
		require.Equal(t, "the budget of the day does not cover the call: "+row.text,
			Short{row.budget, Day{}, row.call}.Text())
	}
	busy := Day{Reserved: Budget{USD: 1, Tokens: 2, Calls: 1}}
	require.Equal(t, "$0.00 of $1.00, reserved: $1.00 by 1 running call", busy.Text(Budget{USD: 1}))
	require.Equal(t, "0 of 1 tokens, reserved: 2 tokens by 1 running call", busy.Text(Budget{Tokens: 1}))
}

// TestCallsOfUnknownNeed run one at a time under a budget of dollars or tokens, and together under one of calls.
func TestCallsOfUnknownNeed(t *testing.T) {
	for _, row := range []struct {
		budget Budget
		busy   bool
	}{{Budget{USD: 1}, true}, {Budget{Tokens: 1}, true}, {Budget{Calls: 3}, false}} {
		h := newHost(t)
		require.Nil(t, h.reserve("r/1", row.budget))
		h.claim("r/1", 1, true)
		_, _, err := h.Reserve(t.Context(), h.call("r/2"), Terms{PerDay: row.budget})
		require.Equal(t, row.busy, errors.Is(err, ErrBusy), "%+v", row.budget)
		other := h.call("r/3")
		other.Role = "tester"
		_, _, err = h.Reserve(t.Context(), other, Terms{PerDay: row.budget})
		require.NoError(t, err, "another role does not wait")
		other = h.call("r/4")
		other.Pipeline = "q"
		_, _, err = h.Reserve(t.Context(), other, Terms{PerDay: row.budget})
		require.NoError(t, err, "another pipeline does not wait")
	}
}

func TestDefaultsOfLedger(t *testing.T) {
	dir := t.TempDir()
	l := Open(dir, "here", Options{})
	before := time.Now()
	day, err := l.Today()
	require.NoError(t, err)
	require.False(t, day.Until.Before(before))
	require.Equal(t, time.Local, day.From.Location())
	require.NoError(t, l.Settle(t.Context(), nil, "r/1", 1))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries, "nothing is created before the first call is reserved")
}

// lines returns the lines of the day's file.
func (h *host) lines() []string {
	h.t.Helper()
	raw, err := os.ReadFile(h.file())
	require.NoError(h.t, err)
	return slices.Collect(strings.Lines(string(raw)))
}

func (h *host) damages() []Damage {
	h.t.Helper()
	found, err := h.program().Damages(h.now.Add(-time.Hour))
	require.NoError(h.t, err)
	return found
}

// paid reserves, claims, answers and settles a call.
func (h *host) paid(id string, s run.Spend) {
	h.t.Helper()
	require.Nil(h.t, h.reserve(id, Budget{}))
	h.claim(id, 1, true)
	h.answer(id, 1, s)
	h.settled(id)
}

// TestFilesAreForTheOwner: other users cannot read what calls cost.
func TestFilesAreForTheOwner(t *testing.T) {
	h := newHost(t)
	h.paid("r/1", exact(1))
	require.NoError(t, os.WriteFile(h.file(), []byte("hello\n"), 0o600))
	h.Ledger = h.program()
	require.Nil(t, h.reserve("r/2", Budget{}))
	for name, want := range map[string]os.FileMode{"": 0o700, "2026-11-25.jsonl": 0o600, "lock": 0o600, damaged: 0o700,
		damaged + "/2026-11-25.1.jsonl": 0o600} {
		info, err := os.Stat(filepath.Join(h.dir, folder, name))
		require.NoError(t, err)
		require.Equal(t, want, info.Mode().Perm(), name)
	}
}

// TestCallAfterDamageIsRecordedBehindIt: each damage keeps its own copy, and a copy that an interrupted restore made is
// not made again.
func TestCallAfterDamageIsRecordedBehindIt(t *testing.T) {
	h := newHost(t)
	h.paid("r/1", exact(1))
	kept := func(n int) string {
		return filepath.Join(h.dir, folder, damaged, fmt.Sprintf("2026-11-25.%d%s", n, suffix))
	}
	require.NoError(t, os.MkdirAll(filepath.Dir(kept(1)), 0o700))
	require.NoError(t, os.WriteFile(kept(1), []byte("hello\n"), 0o600))
	for n, text := range []string{"hello\n", "world\n"} {
		require.NoError(t, os.WriteFile(h.file(), []byte(text), 0o600))
		h.Ledger = h.program()
		require.Nil(t, h.reserve(fmt.Sprintf("r/%d", n+2), Budget{}))
		h.claim(fmt.Sprintf("r/%d", n+2), 1, true)
		for i, line := range h.lines() {
			require.Contains(t, line, fmt.Sprintf(`{"n":%d,`, i+1))
		}
		damages := h.damages()
		require.Len(t, damages, 1, "the file has been replaced")
		require.Equal(t, kept(n+1), damages[0].File)
		require.False(t, damages[0].Open)
		require.Equal(t, n+1, damages[0].Restored)
		raw, err := os.ReadFile(kept(n + 1))
		require.NoError(t, err)
		require.Equal(t, text, string(raw))
		require.Equal(t, 1.0, h.used().USD)
		require.Equal(t, n+1, h.used().Reserved.Calls)
	}
	lines := h.lines()
	require.NoError(t, os.WriteFile(h.file(), []byte(strings.Join(lines[:len(lines)-1], "")+"x\n"), 0o600))
	h.Ledger = h.program()
	require.Nil(t, h.reserve("r/9", Budget{}))
	damages := h.damages()
	require.Len(t, damages, 2)
	require.Equal(t, []string{kept(2), kept(3)}, []string{damages[0].File, damages[1].File})
}

// TestMissingLinesAreCounted counts the lines that a file lacks, whatever surrounds them.
func TestMissingLinesAreCounted(t *testing.T) {
	for name, row := range map[string]struct {
		change func(lines []string) []string
		lost   int
	}{
		"none":                     {func(l []string) []string { return l }, 0},
		"the first":                {func(l []string) []string { return l[1:] }, 1},
		"one between":              {func(l []string) []string { return append(l[:2:2], l[3:]...) }, 1},
		"two between":              {func(l []string) []string { return append(l[:1:1], l[3:]...) }, 2},
		"a changed and a lost one": {func(l []string) []string { return append([]string{l[0], "x\n"}, l[3:]...) }, 2},
		"two changed ones":         {func(l []string) []string { return append([]string{"x\n", "y\n"}, l[2:]...) }, 2},
	} {
		h := newHost(t)
		for _, id := range []string{"r/1", "r/2", "r/3", "r/4", "r/5"} {
			require.Nil(t, h.reserve(id, Budget{}))
		}
		require.NoError(t, os.WriteFile(h.file(), []byte(strings.Join(row.change(h.lines()), "")), 0o600))
		damages := h.damages()
		if row.lost == 0 {
			require.Empty(t, damages, name)
			continue
		}
		require.Len(t, damages, 1, name)
		require.Equal(t, row.lost, damages[0].Lines, name)
	}
}

// TestShrunkFileIsDamaged: what a program has read counts until the file is restored.
func TestShrunkFileIsDamaged(t *testing.T) {
	for name, hurt := range map[string]func(h *host) error{
		"truncated": func(h *host) error { return os.Truncate(h.file(), int64(len(h.lines()[0]))) },
		"removed":   func(h *host) error { return os.Remove(h.file()) },
		"replaced": func(h *host) error {
			return errors.Join(os.WriteFile(h.file()+"~", []byte(h.lines()[0]), 0o600), os.Rename(h.file()+"~", h.file()))
		},
	} {
		h := newHost(t)
		require.Nil(t, h.reserve("r/1", Budget{}))
		h.claim("r/1", 1, true)
		h.answer("r/1", 1, exact(2))
		h.settled("r/1")
		require.NoError(t, hurt(h))
		found, err := h.Damages(h.now.Add(-time.Hour))
		require.NoError(t, err)
		day, err := h.Today()
		require.NoError(t, err)
		require.InDelta(t, 2, day.USD, 1e-9, name)
		require.Equal(t, []Damage{{Day: "2026-11-25", File: h.file(), Open: true}}, found, name)
		require.Nil(t, h.reserve("r/2", Budget{}))
		require.Equal(t, 2.0, h.used().USD, name)
		require.Equal(t, 1, h.used().Reserved.Calls, name)
	}
	h := newHost(t)
	require.Nil(t, h.reserve("r/1", Budget{}))
	require.NoError(t, os.Remove(h.file()))
	day, err := h.Today()
	require.NoError(t, err)
	require.Equal(t, 1, day.Reserved.Calls, "a file with one line")

	require.NoError(t, os.WriteFile(h.file(), nil, 0o600))
	other := h.program()
	found, err := other.Damages(h.now.Add(-time.Hour))
	require.NoError(t, err)
	require.Len(t, found, 1, "a file is created with its first line")
	require.NoError(t, os.Remove(h.file()))
	found, err = other.Damages(h.now.Add(-time.Hour))
	require.NoError(t, err)
	require.Empty(t, found, "it had nothing")
	require.NoError(t, os.Mkdir(h.file(), 0o700))
	_, err = other.Today()
	require.EqualError(t, err, "read the ledger of costs "+h.file()+": it is not a regular file; move it away")
}

// TestOneByteOfAnInterruptedWrite is completed without a copy of it being lost, and a whole file is never copied.
func TestOneByteOfAnInterruptedWrite(t *testing.T) {
	h := newHost(t)
	for _, id := range []string{"r/1", "r/2", "r/3"} {
		require.Nil(t, h.reserve(id, Budget{}))
	}
	require.NoDirExists(t, filepath.Join(h.dir, folder, damaged))
	raw, err := os.ReadFile(h.file())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(h.file(), append(raw, '{'), 0o600))
	h.Ledger = h.program()
	require.Nil(t, h.reserve("r/4", Budget{}))
	require.Empty(t, h.damages())
	require.Equal(t, 4, h.used().Reserved.Calls)
	kept, err := os.ReadFile(filepath.Join(h.dir, folder, damaged, "2026-11-25.1"+suffix))
	require.NoError(t, err)
	require.Equal(t, string(raw)+"{", string(kept))
	for i, line := range h.lines() {
		require.Contains(t, line, fmt.Sprintf(`{"n":%d,"v":1,`, i+1))
	}
}

// TestInterruptedFirstRowIsNoDamage: a program that is killed as it creates the file of a day leaves no empty file,
// which would be reported as damaged.
func TestInterruptedFirstRowIsNoDamage(t *testing.T) {
	h := newHost(t)
	killed := errors.New("killed")
	h.opt.Disk.Hook = func(s disk.Step) error {
		if s.Op == disk.OpWrite && strings.Contains(s.Path, suffix) {
			return killed
		}
		return nil
	}
	_, _, err := h.Reserve(t.Context(), h.call("r/1"), Terms{})
	require.ErrorIs(t, err, killed)
	require.NoFileExists(t, h.file())
	h.Ledger = h.program()
	h.opt.Disk.Hook = nil
	require.Nil(t, h.reserve("r/1", Budget{}))
	require.Empty(t, h.damages())
}

// TestFailedWriteIsRepeated: a line that was not written counts nowhere.
func TestFailedWriteIsRepeated(t *testing.T) {
	h := newHost(t)
	require.Nil(t, h.reserve("r/1", Budget{}))
	full := errors.New("disk full")
	h.opt.Disk.Hook = func(s disk.Step) error {
		if strings.HasSuffix(s.Path, suffix) {
			return full
		}
		return nil
	}
	_, _, err := h.Reserve(t.Context(), h.call("r/2"), Terms{})
	require.ErrorIs(t, err, full)
	require.ErrorContains(t, err, "write the ledger of costs: ")
	h.opt.Disk.Hook = nil
	day, err := h.Today()
	require.NoError(t, err)
	require.Equal(t, 1, day.Reserved.Calls)
	require.Nil(t, h.reserve("r/2", Budget{}))
	require.Equal(t, 2, h.used().Reserved.Calls)
	require.Len(t, h.lines(), 2)
}

// TestPowerFailureLosesNoCost: only reservations are synced. A cost that is lost is found again in the store.
func TestPowerFailureLosesNoCost(t *testing.T) {
	h := newHost(t)
	var synced int64 // size of the file that is on disk
	h.opt.Disk.Hook = func(s disk.Step) error {
		if s.Op == disk.OpSync && strings.Contains(s.Path, suffix) { // the first row in a temporary file
			info, err := os.Stat(s.Path)
			require.NoError(t, err)
			synced = info.Size()
		}
		return nil
	}
	require.Nil(t, h.reserve("r/1", Budget{}))
	h.claim("r/1", 1, true)
	h.answer("r/1", 1, exact(0.5))
	h.settled("r/1")
	want := h.used()
	require.InDelta(t, 0.5, want.USD, 1e-9)
	path := filepath.Join(h.dir, folder, "2026-11-25"+suffix)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Less(t, synced, info.Size())
	require.NoError(t, os.Truncate(path, synced))
	h.Ledger = h.program()
	require.Nil(t, h.reserve("r/2", Budget{}))
	h.settled("r/1")
	require.InDelta(t, want.USD, h.used().USD, 1e-9)
	require.Empty(t, h.damages())
}
