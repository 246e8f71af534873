package pipeline

import (
	"regexp"
	"slices"
	"strconv"
)

var sizeShape = regexp.MustCompile(`^([1-9][0-9]{1,3})x([1-9][0-9]{1,3})$`)

func (d *decoder) sizes(o object) []Size {
	n := o.need("sizes", "sizes: [1440x900]")
	if n == nil {
		return nil
	}
	var out []Size
	for _, item := range d.list(n, o.at("sizes")) {
		text := d.text(item, o.at("sizes"))
		m := sizeShape.FindStringSubmatch(text)
		if m == nil {
			if text != "" {
				d.problem(item, "%s has %q; write width x height in pixels, such as 1440x900", o.at("sizes"), text)
			}
			continue
		}
		w, _ := strconv.Atoi(m[1])
		h, _ := strconv.Atoi(m[2])
		if slices.Contains(out, Size{w, h}) {
			d.problem(item, "%s has %s twice; keep one", o.at("sizes"), text)
		}
		out = append(out, Size{Width: w, Height: h})
	}
	return out
}

func (d *decoder) shotKinds(o object) []string {
	all := []string{"full", "viewport", "scroll"}
	n := o.values["kinds"]
	if n == nil {
		return all
	}
	var out []string
	for _, item := range d.list(n, o.at("kinds")) {
		kind := d.word(item, o.at("kinds"), all...)
		if kind != "" && slices.Contains(out, kind) {
			d.problem(item, "%s has %s twice; keep one", o.at("kinds"), kind)
		}
		out = append(out, kind)
	}
	return out
}
