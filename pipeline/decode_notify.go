package pipeline

import (
	"net/url"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"
)

// Occasions on which somebody is told about a run.
const (
	OnQuestion = "question" // it asks, or reminds of what it asked
	OnPause    = "pause"
	OnBudget   = "budget" // most of it is spent
	OnFailure  = "failure"
	OnEnd      = "end" // in any other way: done, halted, cancelled
)

// Occasions are all of them.
func Occasions() []string { return []string{OnQuestion, OnPause, OnBudget, OnFailure, OnEnd} }

const (
	notifyTimeout = 30 * time.Second
	notifyGiveUp  = 24 * time.Hour
)

// notify reads who is told about a run.
func (d *decoder) notify(o object) {
	n := o.values["notify"]
	if n == nil {
		return
	}
	items := d.list(n, "notify")
	for _, item := range items {
		d.def.Notify = append(d.def.Notify, d.receiver(item))
	}
}

func (d *decoder) receiver(n *yaml.Node) Notify {
	v := Notify{On: Occasions(), Timeout: notifyTimeout, GiveUp: notifyGiveUp}
	o, ok := d.object(n, "notify", "run", "webhook", "webhook_env", "on", "env", "secret_env", "timeout", "give_up")
	if !ok {
		return v
	}
	v.Run, v.Webhook, v.WebhookEnv, v.SecretEnv = o.texts("run"), o.text("webhook"), o.text("webhook_env"), o.text("secret_env")
	ways := 0
	for _, key := range []string{"run", "webhook", "webhook_env"} {
		if o.has(key) {
			ways++
		}
	}
	if ways != 1 {
		d.problem(n, "notify needs one way to tell somebody; write one of: run: [COMMAND, ...], webhook: URL, webhook_env: NAME")
	}
	if v.Webhook != "" {
		if u, err := url.Parse(v.Webhook); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			d.problemAt(o.line("webhook"), "notify.webhook is no address of the web; write one such as https://example.org/hook, or webhook_env: NAME if it is a secret")
		}
	}
	v.Env = d.env(o)
	d.forOnly(o, "env", "run")
	d.forOnly(o, "secret_env", "webhook", "webhook_env")
	for _, key := range []string{"webhook_env", "secret_env"} {
		if name := o.text(key); name != "" && !envName.MatchString(name) {
			d.problemAt(o.line(key), "notify.%s is %q, not the name of an environment variable; the value stays out of the file: write its name only, such as HOOK", key, name)
		}
	}
	if list := o.values["on"]; list != nil {
		v.On = nil
		for _, item := range d.list(list, "notify.on") {
			v.On = append(v.On, d.word(item, "notify.on", Occasions()...))
		}
	}
	o.duration("timeout", &v.Timeout)
	o.duration("give_up", &v.GiveUp)
	return v
}

// forOnly says that a key goes with one of others.
func (d *decoder) forOnly(o object, key string, with ...string) {
	if o.has(key) && !slices.ContainsFunc(with, o.has) {
		d.problemAt(o.line(key), "notify.%s goes with %s; leave it out", key, with[0])
	}
}

// Who names a receiver without what may be a secret of its address.
func (n Notify) Who() string {
	switch {
	case len(n.Run) > 0:
		return n.Run[0]
	case n.WebhookEnv != "":
		return "$" + n.WebhookEnv
	}
	if u, err := url.Parse(n.Webhook); err == nil {
		return u.Host
	}
	return "webhook"
}
