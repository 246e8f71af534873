package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/build"
	"github.com/passbook-run/passbook/internal/codec"
	"github.com/passbook-run/passbook/internal/redact"
	redactor "github.com/passbook-run/passbook/internal/secrets"
	"github.com/passbook-run/passbook/internal/volume"
)

// Exit codes of the worker program.
const (
	exitDone  = 0
	exitError = 1
	exitUsage = 2
)

// usageError is an error in flags or settings; nothing was started.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func asUsage(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

// Main runs the worker program and returns its exit code.
func Main(args []string, in io.Reader, out, errw io.Writer) int {
	var settings config.Settings
	var secrets *redact.Redactor
	cmd := Command(func() CommandEnv { return CommandEnv{Settings: settings, Secrets: secrets, Stderr: errw} })
	cmd.SilenceErrors, cmd.SilenceUsage, cmd.Version = true, true, build.Version()
	cmd.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		var err error
		if settings, err = config.Load(cmd.Flags()); err == nil {
			secrets, err = redactor.New(settings, os.Environ())
		}
		return asUsage(err)
	}
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return asUsage(fmt.Errorf("unknown argument %q: the worker takes flags only", args[0]))
		}
		return nil
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return asUsage(err) })
	config.Flags(cmd.PersistentFlags())
	cmd.SetArgs(args)
	cmd.SetIn(in)
	cmd.SetOut(out)
	cmd.SetErr(errw)
	err := cmd.ExecuteContext(context.Background())
	if err != nil {
		fmt.Fprintf(errw, "Error: %s\n", secrets.Text(volume.Explain(err).Error()))
	}
	return exitCode(err)
}

func exitCode(err error) int {
	var usage usageError
	var keys *codec.SettingsError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &usage), errors.As(err, &keys):
		return exitUsage
	}
	return exitError
}
