// Package picture draws text in a fixed-width font, with colours, bars and lines, as PNG pictures for phones. It
// contains the layout of diffs. Other packages lay out tables and plots.
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

// PhoneColumns is the number of characters in a line that is legible on a phone if the picture is as wide as the
// chat.
const PhoneColumns = 48

// Sizes of a character's cell and of the empty border, in pixels.
const (
	cellWidth  = 18
	cellHeight = 38
	border     = 22
	fontSize   = 30 // an advance of 18 pixels in Go Mono
	baseline   = 28
)

// maxPixels limits the memory of a picture, which needs one byte per pixel.
const maxPixels = 6 << 20

// ErrTooLarge means that a picture would have more than maxPixels pixels.
var ErrTooLarge = errors.New("the picture would be too large")

// Theme is the background for which a picture is drawn.
type Theme uint8

// Themes.
const (
	Light Theme = iota
	Dark
)

// ThemeOf parses a theme from a button's data: "l" or "d".
func ThemeOf(name string) (theme Theme, ok bool) {
	theme, ok = map[string]Theme{"l": Light, "d": Dark}[name]
	return theme, ok
}

// Weight is the font weight of text.
type Weight uint8

// Weights.
const (
	Regular Weight = iota
	Bold
)

// Box is a rectangle in cells, from its upper left corner. Fractions are allowed.
type Box struct{ Column, Row, Columns, Rows float64 }

// Canvas is a picture under construction: cells of characters within a border. Not safe for concurrent use.
type Canvas struct {
	columns, rows int
	image         *image.Paletted
	faces         [2]font.Face
	paints        paints
}

// New returns an empty canvas. It returns ErrTooLarge if the canvas would take too much memory.
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

// Fill paints a rectangle. It cuts off parts outside of the canvas.
func (c *Canvas) Fill(box Box, in Color) {
	c.paint(c.pixels(box), in)
}

// Band paints whole rows from edge to edge, including the border.
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

// Rule draws a horizontal line across the cells of a row, at its upper edge.
func (c *Canvas) Rule(row float64, in Color) {
	at := c.pixels(Box{Row: row, Columns: float64(c.columns), Rows: 1})
	at.Max.Y = min(at.Max.Y, at.Min.Y+2)
	c.paint(at, in)
}

// Text draws a line of text, starting at a cell, and returns the column after the text. It cuts off text outside of
// the canvas. Control characters take no cell. A character that the font lacks becomes an empty box.
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
