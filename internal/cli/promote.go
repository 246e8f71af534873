package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/rundir"
)

func (a *app) promote() *cobra.Command {
	var p operations.Promotion
	cmd := &cobra.Command{
		Use: "promote [RUN] --to PATH", Short: "Copy the result of a finished run to a path",
		Long: `Copy the result of a finished run: its artifact to a file, or its workspace to a folder. The manifest
(result.json) is verified against the journal and the store before anything is copied. PATH is replaced atomically,
and an equal result is not copied again. Another file at PATH is refused; --force replaces it and keeps a copy. No
server is needed.`,
	}
	cmd.Flags().StringVar(&p.To, "to", "", "file or folder; in an existing folder, an artifact keeps its name")
	cmd.Flags().BoolVar(&p.Force, "force", false, "replace another file at PATH and keep a copy beside it")
	asJSON := jsonFlag(cmd)
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if p.To == "" {
			return asUsage(errors.New("name the target: --to PATH"))
		}
		return nil
	}
	return a.onRun(cmd, func(ctx context.Context, d rundir.Dir) error {
		p.Now = time.Now()
		made, err := operations.Promote(ctx, projector.Dir{Dir: d}, p)
		if err != nil {
			return err
		}
		if *asJSON {
			return a.json(made)
		}
		word := "is at"
		if made.Again {
			word = "was already at"
		}
		fmt.Fprintf(a.out, "The %s of run %s (%.12s) %s %s.\n", made.Kind, made.RunID, made.Digest, word, made.Path)
		if made.Before != "" {
			fmt.Fprintf(a.out, "The replaced file is at %s.\n", made.Before)
		}
		return nil
	})
}
