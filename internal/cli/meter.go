package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/figures"
	"github.com/passbook-run/passbook/internal/operations"
)

// quietFor is how long an operation may take before its progress is shown.
const quietFor = time.Second

// meter shows the progress of an operation in one line, which is removed at the end.
type meter struct {
	out   io.Writer
	width int
	began time.Time

	mu   sync.Mutex
	at   operations.Progress
	turn int
	live bool
}

// metered runs an operation. If it takes longer than a second, its progress is shown on a terminal, with what as the
// text until the operation reports another one.
func (a *app) metered(ctx context.Context, what string, f func(ctx context.Context) error) error {
	file, ok := a.err.to.(*os.File)
	if !ok || widthOf(file) == 0 {
		return f(ctx)
	}
	m := &meter{out: controls{a.err}, width: widthOf(file), began: time.Now(), at: operations.Progress{What: what}}
	done := make(chan struct{})
	var drawing sync.WaitGroup
	drawing.Go(func() {
		tick := time.NewTicker(api.Refresh)
		defer tick.Stop()
		for {
			select {
			case now := <-tick.C:
				m.draw(now)
			case <-done:
				m.wipe()
				return
			}
		}
	})
	defer drawing.Wait()
	defer close(done)
	return f(operations.Reporting(ctx, m.report))
}

func (m *meter) report(p operations.Progress) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at = p
}

// draw redraws the line, if it is due.
func (m *meter) draw(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now.Sub(m.began) < quietFor || m.at.What == "" {
		return
	}
	m.turn++
	m.live = true
	line := string([]rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")[m.turn%10]) + " " + m.at.What
	if m.at.Total > 0 {
		const cells = 20
		full := cells * m.at.Done / m.at.Total
		line += fmt.Sprintf("  %s%s %d/%d", strings.Repeat("█", full), strings.Repeat("░", cells-full), m.at.Done,
			m.at.Total)
	}
	line += "  " + figures.Duration(now.Sub(m.began))
	if r := []rune(line); len(r) >= m.width {
		line = string(r[:m.width-1])
	}
	fmt.Fprint(m.out, "\r\x1b[K"+line)
}

func (m *meter) wipe() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.live {
		fmt.Fprint(m.out, "\r\x1b[K")
	}
}
