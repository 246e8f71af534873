package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/passbook-run/passbook/operate"
)

// patience is how long something may take before it is told of.
const patience = time.Second

// meter shows how far something has come, in one line that goes when it is over.
type meter struct {
	out   io.Writer
	width int
	began time.Time

	mu   sync.Mutex
	at   operate.Progress
	turn int
	live bool
}

// metered runs something that may take long, and shows on a terminal how far it has come, once it has taken a second. what is it until it tells more.
func (a *app) metered(ctx context.Context, what string, f func(ctx context.Context) error) error {
	file, ok := a.err.to.(*os.File)
	if !ok || widthOf(file) == 0 {
		return f(ctx)
	}
	m := &meter{out: a.err, width: widthOf(file), began: time.Now(), at: operate.Progress{What: what}}
	done := make(chan struct{})
	var drawing sync.WaitGroup
	drawing.Go(func() {
		tick := time.NewTicker(refresh)
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
	return f(operate.Reporting(ctx, m.tell))
}

func (m *meter) tell(p operate.Progress) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at = p
}

// draw draws the line anew, if it is time to.
func (m *meter) draw(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now.Sub(m.began) < patience || m.at.What == "" {
		return
	}
	m.turn++
	m.live = true
	line := string([]rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")[m.turn%10]) + " " + m.at.What
	if m.at.Total > 0 {
		const cells = 20
		full := cells * m.at.Done / m.at.Total
		line += fmt.Sprintf("  %s%s %d/%d", strings.Repeat("█", full), strings.Repeat("░", cells-full), m.at.Done, m.at.Total)
	}
	line += "  " + short(now.Sub(m.began))
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
