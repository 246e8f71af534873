package pipeline

import (
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
)

func (d *decoder) orders(o object) []Order {
	n := o.values["orders"]
	if n == nil {
		return nil
	}
	if !o.has("for_each") {
		d.problem(n, "%s has orders but no for_each, so there are no files to order; drop orders or write for_each: corpus", o.path)
	}
	var out []Order
	d.named(n, o.at("orders"), "order", func(key, value *yaml.Node, path string) {
		out = append(out, d.order(key.Value, value, path))
	})
	return out
}

// order reads a shift, alone or with a label.
func (d *decoder) order(name string, n *yaml.Node, path string) Order {
	order := Order{Name: name, Den: 1}
	shift := n
	label := ""
	if n.Kind == yaml.MappingNode {
		o, _ := d.object(n, path, "shift", "label")
		if shift = o.need("shift", "shift: 0, or a share such as 2/5"); shift == nil {
			return order
		}
		label = o.text("label")
	}
	order.Num, order.Den = d.shift(shift, path)
	order.Label = label
	if label == "" {
		order.Label = usualLabel(order)
	}
	return order
}

var share = regexp.MustCompile(`^([0-9]{1,4})/([0-9]{1,4})$`)

func (d *decoder) shift(n *yaml.Node, path string) (num, den int) {
	if n.Kind == yaml.ScalarNode && n.Value == "0" {
		return 0, 1
	}
	if m := share.FindStringSubmatch(n.Value); m != nil && n.Kind == yaml.ScalarNode {
		num, _ = strconv.Atoi(m[1])
		den, _ = strconv.Atoi(m[2])
	}
	if den == 0 || num >= den {
		d.problem(n, "%s is %s; write 0, or a share of the files below one, such as 2/5", path, kindOf(n))
		return 0, 1
	}
	return num, den
}

// usualLabel names the three rotations that most corpora use.
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
