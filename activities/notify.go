package activities

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/passbook-run/passbook/agent"
	"github.com/passbook-run/passbook/environ"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/work"
)

// Headers of a message to a webhook.
const (
	idempotencyHeader = "Idempotency-Key"    // the message's id: the same in every delivery
	signatureHeader   = "Passbook-Signature" // sha256=HMAC of the body, in hex, where there is a key
)

// Notified is empty: a message was delivered, or the error says why not.
type Notified struct{}

// Notify tells one receiver once. It may tell twice what was told already, if the worker is lost before Temporal knows: the id is the same then.
func (a *Activities) Notify(ctx context.Context, in work.NotifyInput) (Notified, error) {
	s, err := a.store(ctx, in.Store)
	if err != nil {
		return Notified{}, err
	}
	plan, err := a.plan(ctx, s, in.Plan)
	if err != nil {
		return Notified{}, err
	}
	if in.Receiver < 0 || in.Receiver >= len(plan.Notify) {
		return Notified{}, badInput("the plan has no receiver %d", in.Receiver)
	}
	message, err := json.Marshal(in.Notice)
	if err != nil {
		return Notified{}, err
	}
	to := plan.Notify[in.Receiver]
	ctx, cancel := context.WithTimeoutCause(ctx, to.Timeout, fmt.Errorf("not done after %s", to.Timeout))
	defer cancel()
	if len(to.Run) > 0 {
		err = tell(ctx, to, in, message)
	} else {
		err = a.post(ctx, to, in.Notice.ID, message)
	}
	if err == nil {
		a.cfg.Reached(Told, in.Notice.ID)
	} else if cause := context.Cause(ctx); cause != nil {
		err = fmt.Errorf("%w (%w)", cause, err)
	}
	return Notified{}, err
}

// tell runs a command with the message on its standard input.
func tell(ctx context.Context, to pipeline.Notify, in work.NotifyInput, message []byte) error {
	cmd := group(ctx, to.Run)
	cmd.Dir = os.TempDir() // the run directory may be away
	cmd.Stdin = bytes.NewReader(append(message, '\n'))
	cmd.Env = agent.Command{Env: to.Env, From: environ.Of(ctx), Dir: cmd.Dir, ExtraEnv: map[string]string{
		"PASSBOOK_NOTICE_ID": in.Notice.ID, "PASSBOOK_RUN": in.Notice.Run, "PASSBOOK_EVENT": in.Notice.Event, "PASSBOOK_STATUS": string(in.Notice.Status),
	}}.Environ()
	return finish(cmd)
}

// post sends the message to an address of the web, which must answer with 2xx. Errors do not show the address: it may be a secret.
func (a *Activities) post(ctx context.Context, to pipeline.Notify, id string, message []byte) error {
	address, err := a.named(ctx, to.WebhookEnv, to.Webhook)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(message))
	if err != nil {
		return fmt.Errorf("%s is no address of the web", cmp.Or(to.WebhookEnv, "the webhook"))
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "passbook")
	req.Header.Set(idempotencyHeader, id)
	if to.SecretEnv != "" {
		key, err := a.named(ctx, to.SecretEnv, "")
		if err != nil {
			return err
		}
		sign := hmac.New(sha256.New, []byte(key))
		sign.Write(message)
		req.Header.Set(signatureHeader, "sha256="+hex.EncodeToString(sign.Sum(nil)))
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	var detail *url.Error
	if errors.As(err, &detail) {
		return fmt.Errorf("post to %s: %w", to.Who(), detail.Err)
	}
	if err != nil {
		return err
	}
	defer res.Body.Close()
	said, err := io.ReadAll(io.LimitReader(res.Body, 300))
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("%s answered %s: %s", to.Who(), res.Status, strings.ToValidUTF8(string(said), "�"))
	}
	return err
}

// named is the value of a variable of the run's environment, or else the value given.
func (a *Activities) named(ctx context.Context, variable, value string) (string, error) {
	if variable == "" {
		return value, nil
	}
	where, v := "where the worker was started", ""
	if env := environ.Of(ctx); env != nil {
		where, v = "in the terminal that started the run, or resumed it last", environ.Value(env, variable)
	} else {
		v = a.cfg.Getenv(variable)
	}
	if v == "" {
		return "", fmt.Errorf("%s is not set %s", variable, where)
	}
	return v, nil
}
