package picture

import (
	"image/color"
)

// Color is the name of a colour by its purpose, such as Back for the background. Each theme defines the actual colours.
type Color uint8

// Colours by purpose. Mark1 to Mark6 are for the data series of a plot, in this order.
const (
	Back Color = iota
	Ink
	Muted
	Grid
	Header // background of headings
	Accent
	Added
	AddedBack
	Removed
	RemovedBack
	Mark1
	Mark2
	Mark3
	Mark4
	Mark5
	Mark6
	colors
)

// themeColors returns the colours of a theme. The contrast between text and its background is at least 4.5:1.
func themeColors(theme Theme) [colors]color.NRGBA {
	if theme == Dark {
		return [colors]color.NRGBA{
			Back: hex(0x17212b), Ink: hex(0xe6edf3), Muted: hex(0x93a1b0), Grid: hex(0x34414f), Header: hex(0x22303d),
			Accent: hex(0x6cb6ff),
			Added:  hex(0x7ee787), AddedBack: hex(0x143626), Removed: hex(0xff9a92), RemovedBack: hex(0x46202a),
			Mark1: hex(0x6cb6ff), Mark2: hex(0xf0a35e), Mark3: hex(0x7ee787), Mark4: hex(0xd2a8ff),
			Mark5: hex(0xffd866), Mark6: hex(0xff9a92),
		}
	}
	return [colors]color.NRGBA{
		Back: hex(0xffffff), Ink: hex(0x1f2328), Muted: hex(0x59636e), Grid: hex(0xd1d9e0), Header: hex(0xeef2f6),
		Accent: hex(0x0860ca),
		Added:  hex(0x0b5a23), AddedBack: hex(0xdafbe1), Removed: hex(0x9a1222), RemovedBack: hex(0xffe4e1),
		Mark1: hex(0x0969da), Mark2: hex(0xbc4c00), Mark3: hex(0x1a7f37), Mark4: hex(0x8250df), Mark5: hex(0x9a6700),
		Mark6: hex(0xcf222e),
	}
}

func hex(rgb uint32) color.NRGBA {
	return color.NRGBA{R: uint8(rgb >> 16), G: uint8(rgb >> 8), B: uint8(rgb), A: 255}
}

// shades is the number of antialiasing steps at the edge of a character.
const shades = 7

// paints is the palette of a picture. It contains the colours of the theme. The mixed colours for the edges of
// characters are added when they are first used.
type paints struct {
	list  []color.NRGBA
	mixed map[mixture]uint8
}

type mixture struct{ below, ink, shade uint8 }

func newPaints(theme Theme) paints {
	base := themeColors(theme)
	return paints{list: base[:], mixed: map[mixture]uint8{}}
}

// mix returns the palette index of a mixture of two palette colours. shade is the share of the foreground, from 0 to
// the constant shades. If the palette is full (256 colours), mix returns the palette colour that is nearer to the
// mixture.
func (p *paints) mix(background, foreground, shade uint8) uint8 {
	if shade == 0 || shade >= shades || background == foreground {
		if shade == 0 {
			return background
		}
		return foreground
	}
	key := mixture{background, foreground, shade}
	if index, ok := p.mixed[key]; ok {
		return index
	}
	index := foreground
	switch {
	case len(p.list) < 256:
		index = uint8(len(p.list))
		p.list = append(p.list, blend(p.list[background], p.list[foreground], shade))
	case shade <= shades/2:
		index = background
	}
	p.mixed[key] = index
	return index
}

func blend(a, b color.NRGBA, shade uint8) color.NRGBA {
	mid := func(a, b uint8) uint8 {
		return uint8((int(a)*(shades-int(shade)) + int(b)*int(shade) + shades/2) / shades)
	}
	return color.NRGBA{R: mid(a.R, b.R), G: mid(a.G, b.G), B: mid(a.B, b.B), A: 255}
}

func (p *paints) palette() color.Palette {
	all := make(color.Palette, len(p.list))
	for i, c := range p.list {
		all[i] = c
	}
	return all
}
