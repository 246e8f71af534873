package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/operate"
)

func (a *app) promote() *cobra.Command {
	var dir string
	var p operate.Promotion
	var asJSON bool
	cmd := a.target(&cobra.Command{
		Use: "promote [RUN] --to PATH", Short: "Copy the result of a run that is done to its place",
		Long: `Copy what a run that is done has come to: its artifact to a file, or its workspace to a folder. The manifest of the result (result.json) is
checked against the journal, and that against the store, before anything is copied. What is at PATH is whole at any time. The same promotion
again copies nothing. If something else is at PATH it is refused; with --force it is replaced, and kept beside it. No server is asked or needed.

` + exitCodesHelp,
	}, &dir)
	cmd.Flags().StringVar(&p.To, "to", "", "the file or folder; an artifact goes into a folder that is there under its own name")
	cmd.Flags().BoolVar(&p.Force, "force", false, "replace something else that is there; it is kept beside it")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if p.To == "" {
			return asUsage(errors.New("say where to: --to PATH"))
		}
		d, err := a.find(named(args, dir))
		if err != nil {
			return err
		}
		p.Now = time.Now()
		made, err := operate.Promote(cmd.Context(), d, p)
		if err != nil {
			return err
		}
		if asJSON {
			return a.json(made)
		}
		word := "is at"
		if made.Again {
			word = "was already at"
		}
		fmt.Fprintf(a.out, "The %s of run %s (%.12s) %s %s.\n", made.Kind, made.RunID, made.Digest, word, made.Path)
		if made.Before != "" {
			fmt.Fprintf(a.out, "What was there is at %s.\n", made.Before)
		}
		return nil
	}
	return cmd
}
