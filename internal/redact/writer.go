package redact

import "io"

// Writer redacts each write to w separately: loggers write whole lines.
func (r *Redactor) Writer(w io.Writer) io.Writer { return writer{r, w} }

type writer struct {
	r *Redactor
	w io.Writer
}

func (w writer) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.w, w.r.Text(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
