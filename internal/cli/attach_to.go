package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

func (a *app) attachTo() *cobra.Command {
	return a.onRun(&cobra.Command{
		Use: "attach [RUN]", Short: "Attach to a run: watch it and answer its questions",
		Long: `Show an open run until it pauses or finishes, and ask its questions here. Any number of terminals can attach.
The server and the worker are started if they do not run. Ctrl+C or closing the terminal detaches, and the run
continues. To watch without a server, run: starter watch`,
	}, func(ctx context.Context, d rundir.Dir) error {
		claim, err := a.atHome(d)
		if err != nil {
			return err
		}
		if m, err := d.Meta(); err == nil && run.Status(m.Status).Closed() {
			v := newEventPrinter(a.out, d)
			if _, err := v.update(); err != nil {
				return err
			}
			return a.goodbye(d, v.state, 0)
		}
		if here, err := a.inspect(ctx, d); err != nil || here.Lost != nil {
			return cmp.Or(err, here.Lost)
		}
		s, err := a.connect(ctx, true)
		if err != nil {
			return err
		}
		defer s.Close()
		open, err := s.Open(ctx, claim.RunID)
		if err != nil {
			return err
		}
		if !open {
			why := fmt.Sprintf("run %s is not open; run: %s status %s", claim.RunID, program(), shell.Quote(d.Root))
			return &operations.RefusedError{Verb: "attach", Why: why, Closed: true}
		}
		st := operations.Started{RunID: claim.RunID, Dir: d}
		a.greet(s, st)
		return a.attach(ctx, s, st, detaches)
	})
}
