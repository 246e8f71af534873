package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/operate"
	"github.com/passbook-run/passbook/run"
)

func (a *app) attachTo() *cobra.Command {
	var dir string
	cmd := a.target(&cobra.Command{
		Use: "attach [RUN]", Short: "Attach to a run from this terminal: see it, and answer what it asks",
		Long: `Show a run that is at work until it rests or is over, and ask you what it asks. Any number of terminals may be attached. What the run needs on this
machine is started if it is missing. Ctrl+C detaches, and so does a terminal that is closed: the run goes on. To look without a server: starter watch.

` + exitCodesHelp,
	}, &dir)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		d, err := a.find(named(args, dir))
		if err != nil {
			return err
		}
		claim, err := a.atHome(d)
		if err != nil {
			return err
		}
		if m, err := d.Meta(); err == nil && run.Status(m.Status).Closed() {
			v := newView(a.out, d)
			if _, err := v.update(time.Now()); err != nil {
				return err
			}
			return a.goodbye(d, v.state, 0)
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
			return &operate.RefusedError{Verb: "attach", Why: fmt.Sprintf("run %s is not at work: look with `%s status %s`", claim.RunID, program(), shell.Quote(d.Root))}
		}
		st := operate.Started{RunID: claim.RunID, Dir: d}
		a.greet(s, st)
		return a.attach(ctx, s, st, detaches)
	}
	return cmd
}
