package pipeline

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/passbook-run/passbook/internal/lazyregexp"
)

// Types whose YAML form differs from their fields, or whose fields have defaults.

func defaultLimits() Limits {
	return Limits{
		Timeout:    4 * time.Hour,
		Attempts:   3,
		Structural: 2,
		Backoff:    Backoff{First: 5 * time.Second, Factor: 2, Max: 2 * time.Minute, Jitter: 0.2},
		TimeScale:  1,
	}
}

func (a *Artifact) UnmarshalYAML(n *yaml.Node) error {
	type plain Artifact
	err := n.Decode((*plain)(a))
	a.Seed = path.Clean(a.Seed)
	return err
}

func (r *Repeat) UnmarshalYAML(n *yaml.Node) error {
	type plain Repeat
	r.Stalled = usualStalled
	return n.Decode((*plain)(r))
}

func (w *Workspace) UnmarshalYAML(n *yaml.Node) error {
	type plain Workspace
	w.Secrets = "skip"
	err := n.Decode((*plain)(w))
	if w.Git != "" && w.Dirty == "" {
		w.Dirty = "halt"
	}
	if w.Dir != "" {
		w.Dir = path.Clean(w.Dir)
	}
	return err
}

func (c *Commands) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*c = Commands{n.Value}
		return nil
	}
	return n.Decode((*[]string)(c))
}

func (v *Notify) UnmarshalYAML(n *yaml.Node) error {
	type plain Notify
	*v = Notify{On: Occasions(), Timeout: notifyTimeout, GiveUp: notifyGiveUp}
	return n.Decode((*plain)(v))
}

func (v *Delivery) UnmarshalYAML(n *yaml.Node) error {
	type plain Delivery
	v.Commit = true
	err := n.Decode((*plain)(v))
	for i, p := range v.Paths {
		v.Paths[i] = path.Clean(p)
	}
	return err
}

// UnmarshalYAML reads a word or a list of addresses.
func (v *Network) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*v = Network{n.Value}
		return nil
	}
	return n.Decode((*[]string)(v))
}

// UnmarshalYAML reads a mapping with one entry: label: path.
func (f *File) UnmarshalYAML(n *yaml.Node) error {
	if len(n.Content) == 2 {
		f.Label, f.Path = n.Content[0].Value, path.Clean(n.Content[1].Value)
	}
	return nil
}

func (s *Score) UnmarshalYAML(n *yaml.Node) error {
	type plain Score
	*s = Score{Name: "score", Take: "last", Range: []float64{0, 0}}
	return n.Decode((*plain)(s))
}

// UnmarshalYAML reads a check. Bounds of a width may have a fraction, which is dropped.
func (c *Check) UnmarshalYAML(n *yaml.Node) error {
	type plain Check
	read := struct {
		*plain  `yaml:",inline"`
		Between []float64
	}{plain: (*plain)(c)}
	err := n.Decode(&read)
	for _, bound := range read.Between {
		c.Between = append(c.Between, int(bound))
	}
	return err
}

func (t *Tally) UnmarshalYAML(n *yaml.Node) error { return n.Decode(&t.Heading) }

// UnmarshalYAML reads a scalar of any kind, or a list of them.
func (w *KeyText) UnmarshalYAML(n *yaml.Node) error {
	w.Text = n.Value
	if n.Kind == yaml.SequenceNode {
		texts := make([]string, len(n.Content))
		for i, item := range n.Content {
			texts[i] = item.Value
		}
		w.Text = strings.Join(texts, ", ")
	}
	return nil
}

// UnmarshalYAML reads a shift, with or without a label.
func (o *Order) UnmarshalYAML(n *yaml.Node) error {
	shift := n.Value
	if n.Kind == yaml.MappingNode {
		var labelled struct {
			Shift yaml.Node
			Label string
		}
		if err := n.Decode(&labelled); err != nil {
			return err
		}
		shift, o.Label = labelled.Shift.Value, labelled.Label
	}
	o.Num, o.Den, _ = parseShare(shift)
	return nil
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

// usualLabel returns the label of the three rotations that most corpora use.
func usualLabel(o Order) string {
	switch {
	case o.Name == "A" && o.Num == 0:
		return "Base ordering"
	case o.Name == "B" && o.Num*5 == o.Den*2:
		return "Mid files promoted"
	case o.Name == "C" && o.Num*5 == o.Den*4:
		return "Last files promoted"
	default:
		return ""
	}
}

func (s *Screenshots) UnmarshalYAML(n *yaml.Node) error {
	type plain Screenshots
	*s = Screenshots{Kinds: []string{"full", "viewport", "scroll"}, Attempts: 3, IfFailing: "continue"}
	return n.Decode((*plain)(s))
}

func (s *Size) UnmarshalYAML(n *yaml.Node) error {
	_, err := fmt.Sscanf(n.Value, "%dx%d", &s.Width, &s.Height)
	return err
}
