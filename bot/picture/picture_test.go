package picture

import (
	"bytes"
	"errors"
	"flag"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var keep = flag.String("keep", "", "a directory for the pictures, to look at them")

func TestCanvasDrawsCellsInTheColoursOfItsTheme(t *testing.T) {
	for _, theme := range []Theme{Light, Dark} {
		c, err := New(theme, 10, 3)
		if err != nil {
			t.Fatal(err)
		}
		c.Band(0, 1, AddedBack)
		c.Fill(Box{Column: 2.5, Row: 1, Columns: 2, Rows: 0.5}, Mark1)
		c.Rule(2, Grid)
		if end := c.Text(1, 2, Ink, Bold, "a\u200bb"); end != 3 {
			t.Errorf("the text ends at %d", end)
		}
		want := themeColors(theme)
		middle := func(column, row float64) image.Point {
			return image.Pt(border+int(column*cellWidth), border+int(row*cellHeight))
		}
		for _, at := range []struct {
			where image.Point
			what  Color
		}{
			{image.Pt(1, border+5), AddedBack}, {middle(5, 0.5), AddedBack}, {image.Pt(1, border+cellHeight+1), Back}, {middle(3, 1.2), Mark1},
			{middle(3, 1.6), Back}, {middle(2.4, 1.2), Back}, {middle(4.6, 1.2), Back}, {middle(9, 2), Grid}, {middle(9, 2.5), Back},
		} {
			if got := c.at(at.where.X, at.where.Y); got != want[at.what] {
				t.Errorf("theme %d: the pixel %v is %v, want colour %d", theme, at.where, got, at.what)
			}
		}
		if !inked(c, 1, 2) || !inked(c, 2, 2) || inked(c, 3, 2) {
			t.Error("the text is not in its cells")
		}
	}
}

// inked reports whether a cell shows a character.
func inked(c *Canvas, column, row int) bool {
	for y := range cellHeight {
		for x := range cellWidth {
			if c.at(border+column*cellWidth+x, border+row*cellHeight+y) == c.paints.list[Ink] {
				return true
			}
		}
	}
	return false
}

// Whatever is drawn wherever, the picture stays within its bounds, and PNG readers accept it.
func TestAnythingCanBeDrawnAnywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, err := New(Theme(rapid.IntRange(0, 1).Draw(t, "theme")), rapid.IntRange(1, 30).Draw(t, "columns"), rapid.IntRange(1, 10).Draw(t, "rows"))
		if err != nil {
			t.Fatal(err)
		}
		in := func() Color { return Color(rapid.IntRange(0, int(colors)-1).Draw(t, "colour")) }
		where := rapid.Float64Range(-50, 50)
		for range rapid.IntRange(0, 20).Draw(t, "calls") {
			c.Fill(Box{where.Draw(t, "c"), where.Draw(t, "r"), where.Draw(t, "cs"), where.Draw(t, "rs")}, in())
			c.Band(rapid.IntRange(-3, 12).Draw(t, "row"), rapid.IntRange(-3, 12).Draw(t, "rows"), in())
			c.Rule(where.Draw(t, "rule"), in())
			c.Text(rapid.IntRange(-5, 40).Draw(t, "x"), rapid.IntRange(-5, 40).Draw(t, "y"), in(), Bold, rapid.String().Draw(t, "text"))
		}
		data, err := c.PNG()
		if err != nil {
			t.Fatal(err)
		}
		got, err := png.Decode(bytes.NewReader(data))
		if err != nil || got.Bounds() != c.image.Bounds() {
			t.Errorf("the picture is %v, %v", got, err)
		}
	})
}

func TestPicturesAreBounded(t *testing.T) {
	for _, size := range [][2]int{{1, 1 << 30}, {1 << 40, 1}, {math.MaxInt, math.MaxInt}, {400, 400}} {
		if _, err := New(Light, size[0], size[1]); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%v: %v", size, err)
		}
	}
	for _, size := range [][2]int{{0, 1}, {1, 0}, {-1, -1}} {
		if _, err := New(Light, size[0], size[1]); err == nil {
			t.Errorf("%v is a picture", size)
		}
	}
	if _, err := New(Light, PhoneColumns, 150); err != nil {
		t.Error(err)
	}
}

func TestWrappedLinesLoseNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-zß\t ]{0,60}`).Draw(t, "text")
		columns := rapid.IntRange(3, 20).Draw(t, "columns")
		var out strings.Builder
		for i, line := range Wrap(Line{Runs: []Run{{Text: text, Color: Added}, {Text: text, Color: Removed}}, Below: AddedBack}, columns, Run{Text: "> "}) {
			all := ""
			for _, run := range line.Runs {
				all += run.Text
			}
			if Width(all) > columns || line.Below != AddedBack {
				t.Errorf("%q is longer than %d", all, columns)
			}
			if i > 0 {
				var ok bool
				if all, ok = strings.CutPrefix(all, "> "); !ok {
					t.Errorf("%q is not indented", all)
				}
			}
			out.WriteString(all)
		}
		strip := strings.NewReplacer(" ", "", "\t", "")
		if strip.Replace(out.String()) != strip.Replace(text+text) {
			t.Errorf("%q became %q", text+text, out.String())
		}
	})
}

func TestDrawableSaysWhatTheFontLacks(t *testing.T) {
	for text, want := range map[string]bool{"func main() {}\t\n": true, "Füße Жук λ → ✓ ─│█": true, "漢字": false, "😀": false, "e\u0301": false, "שלום": false} {
		if got := Drawable(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// Text has a contrast of 4.5 to 1 on each background that it is written on, as WCAG 2 requires.
func TestTextHasContrast(t *testing.T) {
	for _, theme := range []Theme{Light, Dark} {
		all := themeColors(theme)
		for below, inks := range map[Color][]Color{
			Back: {Ink, Muted, Accent, Added, Removed, Mark1, Mark2, Mark3, Mark4, Mark5, Mark6}, Header: {Ink, Muted, Accent},
			AddedBack: {Ink, Muted, Added}, RemovedBack: {Ink, Muted, Removed},
		} {
			for _, ink := range inks {
				if got := contrast(all[below], all[ink]); got < 4.5 {
					t.Errorf("theme %d: colour %d on %d has a contrast of %.1f", theme, ink, below, got)
				}
			}
		}
	}
}

func contrast(a, b color.NRGBA) float64 {
	light := func(c color.NRGBA) float64 {
		part := func(v uint8) float64 {
			if x := float64(v) / 255; x <= 0.03928 {
				return x / 12.92
			}
			return math.Pow((float64(v)/255+0.055)/1.055, 2.4)
		}
		return 0.2126*part(c.R) + 0.7152*part(c.G) + 0.0722*part(c.B)
	}
	x, y := light(a)+0.05, light(b)+0.05
	return max(x, y) / min(x, y)
}

func TestLinesAreDrawn(t *testing.T) {
	lines := []Line{
		{Runs: []Run{{Text: "bot/card/card.go", Weight: Bold}, {Text: " +3 -1", Color: Muted}}, Below: Header},
		{Runs: []Run{{Text: "  func main() {"}}},
		{Runs: []Run{{Text: "- return 1", Color: Removed}}, Below: RemovedBack},
		{Runs: []Run{{Text: "+ return 2 // ✓ Füße Жук", Color: Added}}, Below: AddedBack},
	}
	for name, theme := range map[string]Theme{"light": Light, "dark": Dark} {
		data, err := Draw(theme, PhoneColumns, lines)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) > 100<<10 {
			t.Errorf("four lines take %d bytes", len(data))
		}
		if *keep != "" {
			if err := os.WriteFile(filepath.Join(*keep, "lines-"+name+".png"), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// at returns the colour of a pixel.
func (c *Canvas) at(x, y int) color.NRGBA { return c.paints.list[c.image.ColorIndexAt(x, y)] }
