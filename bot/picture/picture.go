// Package picture draws text in a fixed-width font, coloured areas and lines, and returns PNG pictures for phones. It
// also draws diffs. Other packages use it to draw tables and plots.
package picture

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/png"
	"math"

	"golang.org/x/image/font"
)

// PhoneColumns is the number of characters per line that users can still read on a phone without zooming.
const PhoneColumns = 48

// Sizes of the cell of a character and of the empty border around the picture, in pixels.
const (
	cellWidth  = 18
	cellHeight = 38
	border     = 22
	fontSize   = 30 // a character of Go Mono in this size is 18 pixels wide
	baseline   = 28
)

// maxPixels limits the memory of a picture. A pixel needs one byte.
const maxPixels = 6 << 20

// ErrTooLarge means that a picture would need too much memory.
var ErrTooLarge = errors.New("the picture would be too large")

// Theme defines whether a picture has a light or a dark background.
type Theme uint8

// Themes.
const (
	Light Theme = iota
	Dark
)

// ThemeOf returns the theme for a letter in the data of a button, "l" or "d".
func ThemeOf(name string) (theme Theme, ok bool) {
	theme, ok = map[string]Theme{"l": Light, "d": Dark}[name]
	return theme, ok
}

// Weight is the weight of a font.
type Weight uint8

// Weights.
const (
	Regular Weight = iota
	Bold
)

// Box is a rectangle with the upper left corner Column, Row. All numbers are in cells and can have fractions.
type Box struct{ Column, Row, Columns, Rows float64 }

// Canvas is a picture to draw on. It consists of cells, one per character, and a border. It is not safe for concurrent
// use.
type Canvas struct {
	columns, rows int
	image         *image.Paletted
	faces         [2]font.Face
	paints        paints
}

// New returns an empty Canvas. It returns ErrTooLarge if the picture would need too much memory.
func New(theme Theme, columns, rows int) (*Canvas, error) {
	if columns < 1 || rows < 1 {
		return nil, fmt.Errorf("a picture of %d columns and %d rows: %w", columns, rows, errors.ErrUnsupported)
	}
	if columns > maxPixels || rows > maxPixels || width(columns)*height(rows) > maxPixels {
		return nil, ErrTooLarge
	}
	faces, err := openFaces()
	if err != nil {
		return nil, fmt.Errorf("open the font of pictures: %w", err)
	}
	c := &Canvas{columns: columns, rows: rows, faces: faces, paints: newPaints(theme)}
	c.image = image.NewPaletted(image.Rect(0, 0, width(columns), height(rows)), nil)
	return c, nil
}

func width(columns int) int { return columns*cellWidth + 2*border }
func height(rows int) int   { return rows*cellHeight + 2*border }

// Fill fills the part of a rectangle that lies inside of the border.
func (c *Canvas) Fill(box Box, in Color) {
	c.paint(c.pixels(box), in)
}

// Band fills whole rows, including the border on the left and right.
func (c *Canvas) Band(row, rows int, in Color) {
	at := c.pixels(Box{Row: float64(row), Columns: float64(c.columns), Rows: float64(rows)})
	at.Min.X, at.Max.X = 0, c.image.Rect.Max.X
	c.paint(at, in)
}

func (c *Canvas) paint(at image.Rectangle, in Color) {
	index := uint8(in)
	for y := at.Min.Y; y < at.Max.Y; y++ {
		row := c.image.Pix[c.image.PixOffset(at.Min.X, y):c.image.PixOffset(at.Max.X, y)]
		for i := range row {
			row[i] = index
		}
	}
}

func (c *Canvas) pixels(box Box) image.Rectangle {
	x := func(columns float64) int { return border + int(math.Round(columns*cellWidth)) }
	y := func(rows float64) int { return border + int(math.Round(rows*cellHeight)) }
	at := image.Rect(x(box.Column), y(box.Row), x(box.Column+box.Columns), y(box.Row+box.Rows))
	return at.Intersect(image.Rect(border, border, c.image.Rect.Max.X-border, c.image.Rect.Max.Y-border))
}

// Rule draws a horizontal line at the upper edge of a row.
func (c *Canvas) Rule(row float64, in Color) {
	at := c.pixels(Box{Row: row, Columns: float64(c.columns), Rows: 1})
	at.Max.Y = min(at.Max.Y, at.Min.Y+2)
	c.paint(at, in)
}

// Text draws a line of text that begins at a cell, and returns the column after the text. It omits characters outside
// of the canvas. Invisible characters take no cell. Characters that the font lacks become empty boxes.
func (c *Canvas) Text(column, row int, in Color, weight Weight, text string) int {
	for _, r := range text {
		if invisible(r) {
			continue
		}
		if column >= 0 && column < c.columns && row >= 0 && row < c.rows {
			c.glyph(column, row, in, weight, r)
		}
		column++
	}
	return column
}

// PNG returns the picture in PNG format.
func (c *Canvas) PNG() ([]byte, error) {
	c.image.Palette = c.paints.palette()
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&out, c.image); err != nil {
		return nil, fmt.Errorf("encode a picture: %w", err)
	}
	return out.Bytes(), nil
}
