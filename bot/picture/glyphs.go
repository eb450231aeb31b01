package picture

import (
	"image"
	"unicode"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gomono"
	"golang.org/x/image/font/gofont/gomonobold"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
)

// openFaces opens the regular and the bold font. They contain Latin, Greek and Cyrillic letters, and box drawing
// characters.
func openFaces() (faces [2]font.Face, err error) {
	for weight, data := range [][]byte{Regular: gomono.TTF, Bold: gomonobold.TTF} {
		parsed, err := opentype.Parse(data)
		if err != nil {
			return faces, err
		}
		faces[weight], err = opentype.NewFace(parsed, &opentype.FaceOptions{
			Size: fontSize, DPI: 72, Hinting: font.HintingFull,
		})
		if err != nil {
			return faces, err
		}
	}
	return faces, nil
}

// substitute returns a similar character if the font lacks r. Otherwise, it returns r.
func substitute(r rune) rune {
	switch r {
	case '✓', '✔', '☑', '✅':
		return '√'
	case '✗', '✘', '❌':
		return '×'
	case '☐':
		return '□'
	case '⟶':
		return '→'
	case '\u00a0', '\u2009', '\u202f':
		return ' '
	case '\u2011':
		return '-'
	}
	return r
}

// invisible reports whether a character takes no space in a line.
func invisible(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Mn, unicode.Me)
}

// Drawable reports whether the font contains all characters of a text.
func Drawable(text string) bool {
	parsed, err := opentype.Parse(gomono.TTF)
	if err != nil {
		return false
	}
	var buffer sfnt.Buffer
	for _, r := range text {
		if r < unicode.MaxASCII {
			continue
		}
		if unicode.In(r, unicode.Mn, unicode.Me) { // combining accents cannot be drawn
			return false
		}
		if index, err := parsed.GlyphIndex(&buffer, substitute(r)); !invisible(r) && (err != nil || index == 0) {
			return false
		}
	}
	return true
}

// glyph draws a character at a cell.
func (c *Canvas) glyph(column, row int, in Color, weight Weight, r rune) {
	left, top := border+column*cellWidth, border+row*cellHeight
	at, mask, from, _, ok := c.faces[weight].Glyph(fixed.P(left, top+baseline), substitute(r))
	if !ok {
		return
	}
	alpha, ok := mask.(*image.Alpha)
	if !ok {
		return
	}
	shown := at.Intersect(c.image.Rect)
	for y := shown.Min.Y; y < shown.Max.Y; y++ {
		for x := shown.Min.X; x < shown.Max.X; x++ {
			cover := alpha.AlphaAt(from.X+x-at.Min.X, from.Y+y-at.Min.Y).A
			if cover == 0 {
				continue
			}
			pixel := c.image.PixOffset(x, y)
			c.image.Pix[pixel] = c.paints.mix(c.image.Pix[pixel], uint8(in), uint8((int(cover)*shades+127)/255))
		}
	}
}
