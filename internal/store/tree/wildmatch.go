package tree

import "strings"

// outcome is that of a match of git's wildcards.
type outcome int

const (
	fits   outcome = iota
	differ         // here; a star before it may match more
	beyond         // a star may match no more, but stars over folders may
	never          // the text is too short, or the pattern broken
)

// wildmatch matches bytes as wildmatch.c of git does. With folders, only ** between slashes matches a slash.
func wildmatch(p, text string, folders bool) outcome {
	for start := 0; start < len(p); start++ {
		if text == "" && p[start] != '*' {
			return never
		}
		switch c := p[start]; c {
		case '*':
			return star(p, text, start, folders)
		case '?':
			if folders && text[0] == '/' {
				return differ
			}
		case '[':
			end, in := bracket(p, start, text[0])
			if end < 0 {
				return never
			}
			if !in || folders && text[0] == '/' {
				return differ
			}
			start = end
		case '\\':
			if start++; start == len(p) {
				return differ
			}
			fallthrough
		default:
			if p[start] != text[0] {
				return differ
			}
		}
		text = text[1:]
	}
	if text != "" {
		return differ
	}
	return fits
}

// star matches a pattern that has stars at an index.
func star(p, text string, at int, folders bool) outcome {
	rest := strings.TrimLeft(p[at:], "*")
	over := !folders
	if several := len(p)-at-len(rest) > 1; several && folders && (at == 0 || p[at-1] == '/') &&
		(rest == "" || rest[0] == '/' || strings.HasPrefix(rest, `\/`)) {
		if rest != "" && rest[0] == '/' && wildmatch(rest[1:], text, folders) == fits { // **/a matches a
			return fits
		}
		over = true
	}
	if rest == "" {
		if !over && strings.Contains(text, "/") {
			return differ
		}
		return fits
	}
	for ; text != ""; text = text[1:] {
		if o := wildmatch(rest, text, folders); o != differ {
			if !over || o != beyond {
				return o
			}
		} else if !over && text[0] == '/' {
			return beyond
		}
	}
	return never
}

// classes are the character classes of brackets.
var classes = map[string]func(c byte) bool{
	"alnum": isAlnum, "alpha": isAlpha, "digit": isDigit, "lower": isLower, "upper": isUpper,
	"blank":  func(c byte) bool { return c == ' ' || c == '\t' },
	"cntrl":  func(c byte) bool { return c < ' ' || c == 0x7f },
	"graph":  func(c byte) bool { return c > ' ' && c < 0x7f },
	"print":  func(c byte) bool { return c >= ' ' && c < 0x7f },
	"punct":  func(c byte) bool { return c > ' ' && c < 0x7f && !isAlnum(c) },
	"space":  func(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' },
	"xdigit": func(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' },
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isLower(c byte) bool { return c >= 'a' && c <= 'z' }
func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }
func isAlpha(c byte) bool { return isLower(c) || isUpper(c) }
func isAlnum(c byte) bool { return isAlpha(c) || isDigit(c) }

// bracket returns the index of the end of the bracket at an index, and whether it has a byte. A broken one has no end.
func bracket(p string, at int, c byte) (end int, in bool) {
	at++
	not := at < len(p) && (p[at] == '!' || p[at] == '^')
	if not {
		at++
	}
	var before byte // a range may begin with it; 0: none
	for first := at; at < len(p) && (p[at] != ']' || at == first); at++ {
		low, high := p[at], p[at]
		switch {
		case low == '\\':
			if at++; at == len(p) {
				return -1, false
			}
			low, high = p[at], p[at]
		case low == '-' && before != 0 && at+1 < len(p) && p[at+1] != ']':
			if at++; p[at] == '\\' {
				if at++; at == len(p) {
					return -1, false
				}
			}
			low, high = before, p[at]
			before = 0
			in = in || low <= c && c <= high
			continue
		case strings.HasPrefix(p[at:], "[:"):
			name, _, closed := strings.Cut(p[at+2:], "]")
			if !closed {
				return -1, false
			}
			if class, ok := strings.CutSuffix(name, ":"); ok {
				is := classes[class]
				if is == nil {
					return -1, false
				}
				in = in || is(c)
				at, before = at+2+len(name), 0
				continue
			}
		}
		in = in || low <= c && c <= high
		before = high
	}
	if at >= len(p) {
		return -1, false
	}
	return at, in != not
}

// broken reports whether a pattern can match nothing.
func broken(p string) bool {
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '\\':
			i++
		case '[':
			end, _ := bracket(p, i, 0)
			if end < 0 {
				return true
			}
			i = end
		}
		if i >= len(p) {
			return true
		}
	}
	return false
}
