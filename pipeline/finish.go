package pipeline

import (
	"fmt"
	"path"
	"reflect"
	"strconv"

	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/internal/lazyregexp"
)

func (v *Definition) finish(*decoder, location) {
	if v.Default != nil {
		v.Agents = append([]Agent{*v.Default}, v.Agents...)
	}
	if v.Snapshots != "full" {
		v.Snapshots = ""
	}
}

func (v *Agent) finish(*decoder, location) {
	if v.Reply == "" && len(v.Run) > 0 && v.Run[0] == Scripted {
		v.Reply = adapter.ClaudeJSON
	}
}

func (v *Artifact) finish(*decoder, location) { v.Seed = path.Clean(v.Seed) }

func (v *Workspace) finish(*decoder, location) {
	if v.Git != "" && v.Dirty == "" {
		v.Dirty = "halt"
	}
	v.Dir = clean(v.Dir)
}

func (v *Delivery) finish(*decoder, location) {
	for i, p := range v.Paths {
		v.Paths[i] = path.Clean(p)
	}
}

// finish fills in how long a question waits.
func (v *Questions) finish(d *decoder, at location) {
	switch {
	case v.Expires > 0 && v.OnExpiry == "":
		v.OnExpiry = "halt"
	case v.Expires == 0 && d.get(at.key("on_expiry")) != nil:
		d.wrong(at.key("on_expiry"), "has no effect without expires; write expires: 72h or leave it out")
	}
}

func (v *Stage) finish(*decoder, location) {
	v.Dir = clean(v.Dir)
	if v.ForEach != "" && v.Passes != nil || v.Steps == nil {
		v.Steps = v.Passes
	}
}

func clean(p string) string {
	if p == "" {
		return ""
	}
	return path.Clean(p)
}

// finish lays the limits of a step over those of its role.
func (v *Step) finish(d *decoder, at location) {
	if v.Limits == nil {
		return
	}
	*v.Limits = d.def.Limits
	if r, ok := d.roleNamed(v.Role); ok {
		*v.Limits = r.Limits
	}
	d.mapping(at.key("limits"), d.get(at.key("limits")), reflect.ValueOf(v.Limits).Elem(), key{})
}

// finish reads a shift. Three rotations have the labels that most corpora use.
func (v *Order) finish(*decoder, location) {
	v.Num, v.Den, _ = parseShare(v.Shift)
	switch {
	case v.Label != "":
	case v.Name == "A" && v.Num == 0:
		v.Label = "Base ordering"
	case v.Name == "B" && v.Num*5 == v.Den*2:
		v.Label = "Mid files promoted"
	case v.Name == "C" && v.Num*5 == v.Den*4:
		v.Label = "Last files promoted"
	}
}

var share = lazyregexp.New(`^([0-9]{1,4})/([0-9]{1,4})$`)

// parseShare reads 0, or a fraction below one such as 2/5.
func parseShare(text string) (num, den int, ok bool) {
	if m := share.FindStringSubmatch(text); m != nil {
		num, _ = strconv.Atoi(m[1])
		den, _ = strconv.Atoi(m[2])
	}
	if num >= den {
		return 0, 1, text == "0"
	}
	return num, den, true
}

func (v *Size) read(text string) error {
	_, err := fmt.Sscanf(text, "%dx%d", &v.Width, &v.Height)
	return err
}
