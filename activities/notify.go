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
	"strings"
	"time"

	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/environ"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// Headers of a webhook request.
const (
	idempotencyHeader = "Idempotency-Key"    // id of the notice: the same in every delivery
	signatureHeader   = "Passbook-Signature" // sha256=HMAC of the body in hex, if there is a key
)

// Notified is empty.
type Notified struct{}

// Notify notifies one receiver. If the worker is lost, it may deliver twice, with the same id.
func (a *Activities) Notify(ctx context.Context, in contract.NotifyInput) (Notified, error) {
	s, err := a.store(ctx, in.Store)
	if err != nil {
		return Notified{}, err
	}
	plan, err := a.plan(ctx, s, in.Plan)
	if err != nil {
		return Notified{}, err
	}
	if in.Receiver < 0 || in.Receiver >= len(plan.Notify) {
		return Notified{}, badInput("read the plan: no receiver %d", in.Receiver)
	}
	to := plan.Notify[in.Receiver]
	link, err := a.linkFor(in.Notice, to)
	if err != nil {
		return Notified{}, err
	}
	message, err := json.Marshal(linked{in.Notice, link})
	if err != nil {
		return Notified{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, to.Timeout, fmt.Errorf("timeout after %s", to.Timeout))
	defer cancel()
	if len(to.Run) > 0 {
		err = a.notifyCommand(ctx, to, in, link, message)
	} else {
		err = a.notifyWebhook(ctx, to, in.Notice.ID, message)
	}
	if err == nil {
		a.cfg.OnPoint(PointNotified, in.Notice.ID)
	} else if cause := context.Cause(ctx); cause != nil {
		err = fmt.Errorf("%w (%w)", cause, err)
	}
	if err != nil && link != "" && strings.Contains(err.Error(), link) { // the receiver repeats what it got
		err = errors.New(strings.ReplaceAll(err.Error(), link, "[link]"))
	}
	return Notified{}, err
}

// linked is a message with a link to the console.
type linked struct {
	contract.Notice
	Link string `json:"link"` // empty: the host has no console
}

// linkFor returns the address at which its reader continues: one that answers the question, if the receiver gets such
// links, or else the page of the run.
func (a *Activities) linkFor(n contract.Notice, to pipeline.Notify) (string, error) {
	switch {
	case a.cfg.Links == nil:
		return "", nil
	case !to.Link || n.QuestionID == "":
		return a.cfg.Links.Page(n.Run), nil
	}
	var ends time.Time
	if n.ExpiresAt != "" {
		var err error
		if ends, err = time.Parse(run.TimeFormat, n.ExpiresAt); err != nil {
			return "", badInput("read the notification: %v", err)
		}
	}
	return a.cfg.Links.Answer(n.Run, n.QuestionID, to.Who(), ends)
}

// notifyCommand runs a command with the notice on standard input, in a sandbox as the commands of steps.
func (a *Activities) notifyCommand(
	ctx context.Context, to pipeline.Notify, in contract.NotifyInput, link string, message []byte,
) error {
	cmd := agent.Command{Run: in.RunID, Argv: to.Run, Shell: true, Env: to.Env, Environment: environ.FromContext(ctx),
		ExtraEnv: map[string]string{
			"PASSBOOK_NOTICE_ID": in.Notice.ID, "PASSBOOK_RUN": in.Notice.Run, "PASSBOOK_EVENT": in.Notice.Event,
			"PASSBOOK_STATUS": string(in.Notice.Status), "PASSBOOK_LINK": link,
		}}
	a.confine(&cmd, to.Confinement, a.bounds().OfReceiver(to), in.RunID, "")
	printed, err := a.runBriefly(ctx, cmd, append(message, '\n'), "the receiver of a notice took too long")
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s failed: %w: %s", shell.Line(to.Run...), err, lastOf(printed))
}

// notifyWebhook sends the notice to a webhook, which must respond with 2xx. Errors do not contain the URL: it may be a
// secret.
func (a *Activities) notifyWebhook(ctx context.Context, to pipeline.Notify, id string, message []byte) error {
	address, err := a.lookupVariable(ctx, to.WebhookEnv, to.Webhook)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(message))
	if err != nil {
		return fmt.Errorf("%s is not a valid URL", cmp.Or(to.WebhookEnv, "the webhook"))
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "passbook")
	req.Header.Set(idempotencyHeader, id)
	if to.SecretEnv != "" {
		key, err := a.lookupVariable(ctx, to.SecretEnv, "")
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
	body, err := io.ReadAll(io.LimitReader(res.Body, 300))
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("post to %s: %s: %s", to.Who(), res.Status, strings.ToValidUTF8(string(body), "�"))
	}
	return err
}

// lookupVariable returns the value of a variable of the run's environment, or value if no variable is named.
func (a *Activities) lookupVariable(ctx context.Context, variable, value string) (string, error) {
	if variable == "" {
		return value, nil
	}
	where, v := "where the worker was started", ""
	if env := environ.FromContext(ctx); env != nil {
		where, v = "in the terminal that started the run, or resumed it last", environ.Value(env, variable)
	} else {
		v = a.cfg.Getenv(variable)
	}
	if v == "" {
		return "", fmt.Errorf("%s is not set %s", variable, where)
	}
	return v, nil
}
