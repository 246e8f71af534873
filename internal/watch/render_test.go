package watch

import (
	"context"
	"flag"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/testenv"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
)

var update = flag.Bool("update", false, "rewrite the screens in testdata")

var codes = regexp.MustCompile("\x1b\\[[0-9;]*m")

// draw returns a scene on a terminal of a size, without keys.
func draw(s Scene, width, height int, dark bool) string {
	text, _ := newTheme(dark, colorprofile.TrueColor).screen(s, nil, 0, width, height)
	return text
}

// TestScreens compares the screens with reviewed files.
func TestScreens(t *testing.T) {
	for _, row := range []struct {
		name          string
		scene         Scene
		width, height int
	}{
		{"pass-35-at-70x60", at35(), 70, 60}, {"pass-35-at-80x24", at35(), 80, 24},
		{"pass-35-at-140x36", at35(), 140, 36}, {"pass-35-at-80x60", at35(), 80, 60},
		{"cycle-2-at-70x60", inCycle2(), 70, 60}, {"cycle-2-at-80x60", inCycle2(), 80, 60},
		{"cycle-2-at-140x36", inCycle2(), 140, 36},
		{"cycle-2-at-200x40", inCycle2(), 200, 40}, {"question-at-80x50", asking(), 80, 50},
		{"question-at-140x40", asking(), 140, 40},
		{"limit-at-80x24", waitingForLimit(), 80, 24}, {"delivery-at-140x80", delivering(), 140, 80},
		{"closing-check-at-140x80", closing(), 140, 80}, {"lanes-at-80x60", parallel(), 80, 60},
		{"lanes-at-140x60", parallel(), 140, 60},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := plainly(row.scene, row.width, row.height) + "\n"
			testenv.Golden(t, *update, row.name, got)
		})
	}
}

// The lines of the drawings in requirement 002 §7.1 and §7.2, without its frames. The bar, whose drawing shows
// 50 % for 62 %, is drawn by the rule of §7.5; the scores below the trend are centred below their points.
const (
	drawnPass = `MULTI-PASS CORPUS INTEGRATION PIPELINE
Run: a1b2c3d4  │  Started: 2026-02-28 14:23 UTC
Phase: CORPUS INTEGRATION
Progress: █████████████████████████░░░░░░░░░░░░░░░  35/56 (62%)
Subset:   S5 (Grammar + Compositional Rules)     Pass: 3/8
Rotation: A (Base ordering)                      Role: Builder
─ Current Pass ─
Pass 35/56 │ S5 Rotation A Builder
Status: Running... (2m 14s elapsed)
Files: Mechanisms → Rules → Combinations → Borders → Sem.
─ Timing ─
Elapsed:    4h 23m          Avg/pass: 4m 32s
Remaining:  ~3h 10m (est)   Avg/subset: 36m 18s
─ Cost ─
Total: $87.45               Budget: $350.00 (25% used)
Builder: $62.30  Verifier: $25.15  PA: $0.00
Avg/pass: $2.50             Est. total: $140 (projected)
─ Quality ─
Validation:  34/34 passed   0 warnings
Conviction:  31 entries     Discovery: 28 entries
No-modify:   2 passes       Retries: 1
─ Subset Progress ─
S1 ████████ done  │  S2 ████████ done  │  S3 ████████ done
S4 ████████ done  │  S5 ███░░░░░ 3/8   │  S6 ░░░░░░░░ —
S7 ░░░░░░░░ —     │
Last 3 passes
33: S5/1A Builder  166s  $1.18  PASS
34: S5/2A Verifier  42s  $0.87  PASS
35: S5/3A Builder  ...running...`
	drawnCycle = `Phase: PA HARDENING
Cycle: 2/6            PA-05 Score: 2.5 → 3.0 (target: 3.5)
Score trend:  ●─────●─────○ ─ ─ ─ ─ ─ ─
             2.5   3.0   3.5
Cycle 2:  Screenshots ✓  Auditors ✓  Weaver ✓  Refine ▶
Auditor scores:  A: 2.5  B: 3.0  C: 3.5
Weaver PA-05: 3.0/4`
)

// TestDrawnLines compares the screens with requirement 002 §7 character by character.
func TestDrawnLines(t *testing.T) {
	drawn := at35()
	f := &drawn.Figures
	f.Progress.Done, f.Progress.Percent, f.Timing.Paused = 35, 62, 0
	f.InFlight[0].Attempt, f.InFlight[0].Files[4] = 1, "Sem."
	f.Last = append([]view.Numbered{numbered(32, "S4", 8, "C", "verifier", 0, 0)}, f.Last...)
	f.Last[1].RetryCount, f.Last[2].ValidationPassed, f.Last[2].Checkpoint = 0, true, ""
	for _, width := range []int{70, 80, 140} {
		for _, row := range []struct {
			scene Scene
			lines string
		}{{drawn, drawnPass}, {inCycle2(), drawnCycle}} {
			screen := plainly(row.scene, width, 60)
			require.NotContains(t, screen, "32: ")
			for line := range strings.SplitSeq(row.lines, "\n") {
				require.Contains(t, screen, line, "at %d columns", width)
			}
		}
	}
}

// TestKeysFit: at 70 columns the last key is whole.
func TestKeysFit(t *testing.T) {
	for _, width := range []int{70, 80, 140} {
		m := shown(at35(), Options{Actions: &fakeActions{}, Attached: true,
			Interrupt: func(context.Context, int) error { return nil }})
		m.width, m.last = width, 9
		require.NotContains(t, m.keys(), "…", "at %d columns", width)
		require.Contains(t, codes.ReplaceAllString(m.keys(), ""), "leave")
	}
}

// TestEveryWidthFits requires that no line is wider than the terminal, and no screen higher.
func TestEveryWidthFits(t *testing.T) {
	for name, scene := range map[string]Scene{"pass 35": at35(), "cycle 2": inCycle2(), "question": asking(),
		"nothing": {}} {
		for width := 20; width <= 200; width += 3 {
			for _, height := range []int{8, 24, 50, 90} {
				where := fmt.Sprintf("%s at %dx%d", name, width, height)
				lines := strings.Split(draw(scene, width, height, false), "\n")
				require.LessOrEqual(t, len(lines), height, where)
				for _, l := range lines {
					require.LessOrEqual(t, lipgloss.Width(l), width, "%s: %q", where, l)
				}
			}
		}
	}
}

// TestSymbolsRepeatColours loses nothing without colours.
func TestSymbolsRepeatColours(t *testing.T) {
	s := at35()
	for status, sign := range map[run.Status]string{run.Running: "▶ running", run.Paused: "‖ paused",
		run.Done: "✓ done", run.Failed: "✗ failed", run.Interrupted: "✗ interrupted"} {
		s.Status = status
		require.Contains(t, plainly(s, 80, 60), sign)
	}
	require.Contains(t, plainly(at35(), 80, 60), "FAIL", "pass 34 has not passed")
}

// TestThemesDiffer has different colours, and the same text, for each background.
func TestThemesDiffer(t *testing.T) {
	dark, light := draw(at35(), 80, 60, true), draw(at35(), 80, 60, false)
	require.NotEqual(t, dark, light)
	require.Equal(t, codes.ReplaceAllString(dark, ""), codes.ReplaceAllString(light, ""))
}

func TestScrollingReachesEnd(t *testing.T) {
	th := newTheme(true, colorprofile.TrueColor)
	all := []string{"1", "2", "3", "4", "5", "6"}
	shown, last := th.window(all, 0, 4, 20)
	require.Equal(t, 3, last)
	require.Equal(t, []string{"1", "2", "3"}, shown[:3])
	require.Contains(t, shown[3], "3 more lines")
	shown, _ = th.window(all, 99, 4, 20)
	require.Equal(t, []string{"4", "5", "6"}, shown[:3])
	shown, last = th.window(all, 0, 6, 20)
	require.Equal(t, all, shown)
	require.Zero(t, last)
}
