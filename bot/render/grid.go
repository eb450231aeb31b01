package render

import (
	"strings"
	"unicode"
)

const (
	maxTableWidth = 44 // maximum columns of a table in monospace, because a phone cannot show more
	maxLabelWidth = 40 // maximum columns of a header in lines such as "header: value"
	maxRepeats    = 8  // if the function repeats returns more, a table is not written as records
)

const gap = 3 // " | "

func columnWidths(rows [][]Text) []int {
	var widths []int
	for _, row := range rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 1)
			}
			widths[i] = max(widths[i], Width(flat(c)))
		}
	}
	return widths
}

func total(widths []int) int {
	n := gap * max(0, len(widths)-1)
	for _, w := range widths {
		n += w
	}
	return n
}

func widest(row []Text) int {
	n := 0
	for _, c := range row {
		n = max(n, Width(flat(c)))
	}
	return n
}

// grid returns the table as lines of text with aligned columns. The first row is the header.
func grid(rows [][]Text, widths []int, aligns []align) string {
	var b strings.Builder
	for i, row := range rows {
		b.WriteString(gridLine(row, widths, aligns))
		b.WriteByte('\n')
		if i > 0 {
			continue
		}
		for j, w := range widths {
			if j > 0 {
				b.WriteString("-+-")
			}
			b.WriteString(strings.Repeat("-", w))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func gridLine(row []Text, widths []int, aligns []align) string {
	var b strings.Builder
	for i, c := range row {
		if i > 0 {
			b.WriteString(" | ")
		}
		a := alignLeft
		if i < len(aligns) {
			a = aligns[i]
		}
		s := flat(c)
		space := widths[i] - Width(s)
		left := 0
		switch a {
		case alignRight:
			left = space
		case alignCenter:
			left = space / 2
		}
		b.WriteString(strings.Repeat(" ", left) + s + strings.Repeat(" ", space-left))
	}
	return strings.TrimRight(b.String(), " ")
}

// repeats estimates how much longer a table becomes if its header cells are repeated before each value. It returns the
// length of the repeated headers, divided by the length of the table.
func repeats(rows [][]Text) int {
	labels, all := 0, 0
	for n, row := range rows {
		for i, c := range row {
			all += len(c.Text)
			if n > 0 && c.Text != "" {
				labels += len(at(rows[0], i).Text)
			}
		}
	}
	return labels / max(all, 1)
}

// records writes each row as lines of the form "header: value", with an empty line between rows. A column without any
// values appears only in the first row, so that its header is not missing.
func (r *renderer) records(rows [][]Text) {
	header, body := rows[0], rows[1:]
	if len(body) == 0 {
		r.pipedRow(header, Bold)
		return
	}
	used := map[int]bool{}
	for _, row := range body {
		for i, c := range row {
			used[i] = used[i] || c.Text != ""
		}
	}
	first := true
	for n, row := range body {
		fresh := true
		columns := len(row)
		if n == 0 {
			columns = max(columns, len(header))
		}
		for i := range columns {
			value, label := at(row, i), at(header, i)
			if value.Text == "" && (n > 0 || used[i] || label.Text == "") {
				continue
			}
			if !first {
				r.separate(fresh)
			}
			first, fresh = false, false
			r.record(label, value)
		}
	}
}

func (r *renderer) record(label, value Text) {
	if label.Text != "" {
		r.out.add(Wrap(Bold, label))
		r.out.write(": ")
		if value.Text == "" {
			r.out.write("—")
		}
	}
	r.out.add(value)
}

func at(row []Text, i int) Text {
	if i < len(row) {
		return row[i]
	}
	return Text{}
}

// piped writes a table with a | between its cells, like the source. It is used for tables that are too wide for any
// other form.
func (r *renderer) piped(rows [][]Text) {
	for i, row := range rows {
		kind := Bold
		if i > 0 {
			r.separate(false)
			kind = ""
		}
		r.pipedRow(row, kind)
	}
}

func (r *renderer) pipedRow(row []Text, kind Kind) {
	for i, c := range row {
		if i > 0 {
			r.out.write(" | ")
		}
		if kind != "" {
			c = Wrap(kind, c)
		}
		r.out.add(c)
	}
}

// Width returns how many columns s takes up in a monospaced font.
func Width(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf && r != 0x303f, r >= 0xac00 && r <= 0xd7a3,
		r >= 0xf900 && r <= 0xfaff, r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60,
		r >= 0xffe0 && r <= 0xffe6, r >= 0x1f300 && r <= 0x1f64f, r >= 0x1f680 && r <= 0x1f6ff,
		r >= 0x1f900 && r <= 0x1faff, r >= 0x20000 && r <= 0x3fffd,
		r == 0x2705, r == 0x274c, r == 0x2757, r == 0x2b50:
		return 2
	}
	return 1
}
