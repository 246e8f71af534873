package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/api"
)

func (a *app) promote() *cobra.Command {
	var in api.PromoteInput
	cmd := &cobra.Command{
		Use: "promote [RUN] --to PATH", Short: "Copy the result of a finished run to a path",
		Long: `Copy the result of a finished run: its artifact to a file, or its workspace to a folder. The manifest
(result.json) is verified against the journal and the store before anything is copied. PATH is replaced atomically,
and an equal result is not copied again. Another file at PATH is refused; --force replaces it and keeps a copy. No
server is needed.`,
	}
	cmd.Flags().StringVar(&in.To, "to", "", "file or folder; in an existing folder, an artifact keeps its name")
	cmd.Flags().BoolVar(&in.Force, "force", false, "replace another file at PATH and keep a copy beside it")
	asJSON := jsonFlag(cmd)
	return a.onNamed(cmd, func(ctx context.Context, name string) error {
		in.Run = name
		made, err := api.Promote(ctx, a.host(), in)
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
