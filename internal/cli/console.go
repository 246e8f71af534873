package cli

import (
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/console"
	"github.com/passbook-run/passbook/internal/console/login"
	"github.com/passbook-run/passbook/internal/console/pages"
	"github.com/passbook-run/passbook/internal/host"
)

func (a *app) console() *cobra.Command {
	var at console.Listening
	cmd := &cobra.Command{
		Use: "console", Short: "Serve runs to browsers and programs: pages and HTTP API", Args: cobra.NoArgs,
		Long: `Serve the runs of this host until the command is interrupted: pages for browsers, and an HTTP API, which
/openapi.json describes. A browser opens the printed link, which works once; for another one, run: starter console
link. Programs send a token, which starter token makes.

It listens on the loopback interface. Another address needs a certificate, or a proxy with TLS in front of it. Reading
needs no Temporal server; other requests start one if none runs.`,
		Example: "  starter console\n  starter console --listen 0.0.0.0:8400 --tls-cert cert.pem --tls-key key.pem\n" +
			"  starter console --behind-proxy https://passbook.example.org",
	}
	f := cmd.Flags()
	f.StringVar(&at.Address, "listen", config.ConsoleAddress, "address")
	f.StringVar(&at.Cert, "tls-cert", "", "file with the certificate, PEM")
	f.StringVar(&at.Key, "tls-key", "", "file with the key of the certificate, PEM")
	f.StringVar(&at.Proxy, "behind-proxy", "", "URL of the proxy with TLS that clients use")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		defer stop()
		o := console.Options{Host: a.host(), User: host.User(), Err: a.err, Pages: pages.New}
		return console.Serve(ctx, o, at, func(base, programs string) error {
			path, err := login.NewLink(a.settings.StateDir, time.Now())
			if err != nil {
				return err
			}
			fmt.Fprintf(a.out, "Console  %s\nLog in   %s\n", base, base+path)
			fmt.Fprintf(a.out, "         works once, for %d minutes; for another link: %s console link\n",
				int(login.LinkLife.Minutes()), program())
			fmt.Fprintf(a.out, "API      %s\n", programs+"/openapi.json")
			fmt.Fprintf(a.out, "         for a token: %s token create NAME --can read\n", program())
			return nil
		})
	}
	cmd.AddCommand(&cobra.Command{
		Use: "link", Short: "Print another link with which a browser logs in", Args: cobra.NoArgs,
		Long: `Print another link with which a browser logs in to the console of this state directory. It works once, for
15 minutes. Anyone who opens it can do what you can do with starter.`,
		RunE: func(*cobra.Command, []string) error {
			link, err := console.Link(a.settings.StateDir, time.Now())
			if err != nil {
				return err
			}
			fmt.Fprintln(a.out, link)
			return nil
		},
	})
	return cmd
}
