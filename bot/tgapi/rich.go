package tgapi

import (
	"github.com/go-telegram/bot/models"

	"ductor/bot/render"
)

// rich returns blocks in the library's format, without secrets.
func (c *Client) rich(blocks []render.Block) models.InputRichMessage {
	return models.InputRichMessage{Blocks: inputBlocks(c.scrub.Blocks(blocks))}
}

func inputBlocks(blocks []render.Block) []models.InputRichBlock {
	out := make([]models.InputRichBlock, 0, len(blocks))
	for _, b := range blocks {
		out = append(out, inputBlock(b))
	}
	return out
}

func inputBlock(b render.Block) models.InputRichBlock {
	text := richText(b.Text)
	switch b.Kind {
	case render.Heading:
		return models.InputRichBlock{
			Type: models.RichBlockTypeSectionHeading,
			InputRichBlockSectionHeading: &models.InputRichBlockSectionHeading{
				Text: text, Size: min(max(b.Level, 1), 6),
			},
		}
	case render.PreBlock:
		return models.InputRichBlock{
			Type:                       models.RichBlockTypePreformatted,
			InputRichBlockPreformatted: &models.InputRichBlockPreformatted{Text: text, Language: b.Language},
		}
	case render.Divider:
		return models.InputRichBlock{
			Type: models.RichBlockTypeDivider, InputRichBlockDivider: &models.InputRichBlockDivider{},
		}
	case render.QuoteOf:
		return models.InputRichBlock{
			Type:                         models.RichBlockTypeBlockQuotation,
			InputRichBlockBlockQuotation: &models.InputRichBlockBlockQuotation{Blocks: inputBlocks(b.Blocks)},
		}
	case render.Details:
		return models.InputRichBlock{
			Type:                  models.RichBlockTypeDetails,
			InputRichBlockDetails: &models.InputRichBlockDetails{Summary: text, Blocks: inputBlocks(b.Blocks)},
		}
	case render.List:
		return models.InputRichBlock{
			Type: models.RichBlockTypeList, InputRichBlockList: &models.InputRichBlockList{Items: inputItems(b.Items)},
		}
	case render.TableOf:
		return models.InputRichBlock{
			Type:                models.RichBlockTypeTable,
			InputRichBlockTable: &models.InputRichBlockTable{Cells: inputCells(b.Rows), IsBordered: true},
		}
	}
	return models.InputRichBlock{
		Type: models.RichBlockTypeParagraph, InputRichBlockParagraph: &models.InputRichBlockParagraph{Text: text},
	}
}

func inputItems(items []render.Item) (out []models.InputRichBlockListItem) {
	for _, item := range items {
		in := models.InputRichBlockListItem{
			Blocks: inputBlocks(item.Blocks), HasCheckbox: item.Box != render.NoBox, IsChecked: item.Box == render.Done,
		}
		if item.Number > 0 && item.Box == render.NoBox {
			in.Value, in.Type = item.Number, "1"
		}
		out = append(out, in)
	}
	return out
}

func inputCells(rows [][]render.Cell) (out [][]models.RichBlockTableCell) {
	for _, row := range rows {
		var cells []models.RichBlockTableCell
		for _, c := range row {
			cell := models.RichBlockTableCell{IsHeader: c.Header, Align: c.Align, Valign: "top"}
			if c.Text.Text != "" {
				text := richText(c.Text)
				cell.Text = &text
			}
			cells = append(cells, cell)
		}
		out = append(out, cells)
	}
	return out
}

// richText returns formatted text in the library's format, which is a tree: an entity contains the text and the
// entities inside it.
func richText(t render.Text) models.RichText {
	var list []models.RichText
	at, end := 0, render.Len(t.Text)
	plain := func(to int) {
		if to > at {
			list = append(list, models.RichText{PlainText: render.Slice(render.Text{Text: t.Text}, at, to).Text})
		}
		at = max(at, to)
	}
	for i := 0; i < len(t.Entities); i++ {
		e := t.Entities[i]
		if e.Offset < at {
			continue // e is inside the previous entity
		}
		plain(e.Offset)
		inner := render.Slice(render.Text{Text: t.Text, Entities: t.Entities[i+1:]}, e.Offset, e.End())
		list = append(list, formatted(e, richText(inner)))
		at = e.End()
	}
	plain(end)
	switch len(list) {
	case 0:
		return models.RichText{}
	case 1:
		return list[0]
	}
	return models.RichText{Array: list}
}

func formatted(e render.Entity, text models.RichText) models.RichText {
	switch e.Kind {
	case render.Bold:
		return models.RichText{Type: models.RichTextTypeBold, RichTextBold: &models.RichTextBold{Text: text}}
	case render.Italic:
		return models.RichText{Type: models.RichTextTypeItalic, RichTextItalic: &models.RichTextItalic{Text: text}}
	case render.Strikethrough:
		return models.RichText{
			Type: models.RichTextTypeStrikethrough, RichTextStrikethrough: &models.RichTextStrikethrough{Text: text},
		}
	case render.Code, render.Pre:
		return models.RichText{Type: models.RichTextTypeCode, RichTextCode: &models.RichTextCode{Text: text}}
	case render.Link:
		return models.RichText{Type: models.RichTextTypeURL, RichTextURL: &models.RichTextURL{Text: text, URL: e.URL}}
	}
	return text
}
