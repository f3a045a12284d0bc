//! Pixels in memory with a font of their own, written as PNG.
//!
//! A drawing must look the same on a machine without fonts, so text is of the
//! bitmap fonts of the crate `embedded-graphics`.

use std::io::Write;

use embedded_graphics::mono_font::{MonoFont, MonoTextStyle, ascii};
use embedded_graphics::pixelcolor::BinaryColor;
use embedded_graphics::prelude::{
    Dimensions as _, DrawTarget, Drawable as _, OriginDimensions, Pixel, Point, Size,
};
use embedded_graphics::text::{Baseline, Text};
use plotters_backend::FontTransform;
use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendTextStyle, DrawingBackend, DrawingErrorKind,
};

/// What cannot happen here: pixels are always there.
type Never = std::convert::Infallible;

/// A picture of red, green and blue bytes.
#[derive(Debug)]
pub(super) struct Canvas {
    size: (u32, u32),
    pixels: Vec<u8>,
}

impl Canvas {
    /// A white one.
    pub(super) fn new(size: (u32, u32)) -> Self {
        let bytes = size.0 as usize * size.1 as usize * 3;
        Self {
            size,
            pixels: vec![255; bytes],
        }
    }

    /// Packs it.
    pub(super) fn write_png(&self, out: impl Write) -> anyhow::Result<()> {
        let mut encoder = png::Encoder::new(out, self.size.0, self.size.1);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&self.pixels)?;
        Ok(writer.finish()?)
    }

    /// Mixes a colour into a pixel; outside of the picture there is none.
    fn mix(&mut self, (x, y): BackendCoord, colour: BackendColor) {
        let (Ok(x), Ok(y)) = (u32::try_from(x), u32::try_from(y)) else {
            return;
        };
        if x >= self.size.0 || y >= self.size.1 {
            return;
        }
        let at = (y as usize * self.size.0 as usize + x as usize) * 3;
        let (red, green, blue) = colour.rgb;
        for (have, new) in self.pixels[at..at + 3].iter_mut().zip([red, green, blue]) {
            let mixed = f64::from(*have) * (1.0 - colour.alpha) + f64::from(new) * colour.alpha;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "between two bytes"
            )]
            let mixed = mixed.round().clamp(0.0, 255.0) as u8;
            *have = mixed;
        }
    }
}

impl DrawingBackend for &mut Canvas {
    type ErrorType = Never;

    fn get_size(&self) -> (u32, u32) {
        self.size
    }

    fn ensure_prepared(&mut self) -> Result<(), DrawingErrorKind<Never>> {
        Ok(())
    }

    fn present(&mut self) -> Result<(), DrawingErrorKind<Never>> {
        Ok(())
    }

    fn draw_pixel(
        &mut self,
        point: BackendCoord,
        colour: BackendColor,
    ) -> Result<(), DrawingErrorKind<Never>> {
        self.mix(point, colour);
        Ok(())
    }

    fn draw_text<S: BackendTextStyle>(
        &mut self,
        text: &str,
        style: &S,
        at: BackendCoord,
    ) -> Result<(), DrawingErrorKind<Never>> {
        let font = font(style.size());
        let text = Text::with_baseline(
            text,
            Point::zero(),
            MonoTextStyle::new(font, BinaryColor::On),
            Baseline::Top,
        );
        let Size { width, height } = text.bounding_box().size;
        let (wide, tall) = (width.cast_signed(), height.cast_signed());
        let left = match style.anchor().h_pos {
            HPos::Left => 0,
            HPos::Center => -wide / 2,
            HPos::Right => -wide,
        };
        let top = match style.anchor().v_pos {
            VPos::Top => 0,
            VPos::Center => -tall / 2,
            VPos::Bottom => -tall,
        };
        let mut ink = Ink {
            canvas: self,
            at,
            anchor: (left, top),
            turn: style.transform(),
            colour: style.color(),
        };
        let Ok(_) = text.draw(&mut ink);
        Ok(())
    }

    fn estimate_text_size<S: BackendTextStyle>(
        &self,
        text: &str,
        style: &S,
    ) -> Result<(u32, u32), DrawingErrorKind<Never>> {
        let one = font(style.size()).character_size;
        let wide = one.width * u32::try_from(text.chars().count()).unwrap_or(0);
        Ok(match style.transform() {
            FontTransform::Rotate90 | FontTransform::Rotate270 => (one.height, wide),
            FontTransform::None | FontTransform::Rotate180 => (wide, one.height),
        })
    }
}

/// The font nearest to a size of plotters, which is of a whole line.
fn font(size: f64) -> &'static MonoFont<'static> {
    if size < 13.5 {
        &ascii::FONT_6X13
    } else if size < 15.5 {
        &ascii::FONT_7X14
    } else {
        &ascii::FONT_8X13_BOLD
    }
}

/// Letters on their way to the picture, turned about the place of the text.
struct Ink<'c> {
    canvas: &'c mut Canvas,
    at: BackendCoord,
    anchor: (i32, i32),
    turn: FontTransform,
    colour: BackendColor,
}

impl OriginDimensions for Ink<'_> {
    fn size(&self) -> Size {
        Size::new(self.canvas.size.0, self.canvas.size.1)
    }
}

impl DrawTarget for Ink<'_> {
    type Color = BinaryColor;
    type Error = Never;

    fn draw_iter<I>(&mut self, pixels: I) -> Result<(), Never>
    where
        I: IntoIterator<Item = Pixel<BinaryColor>>,
    {
        for Pixel(point, colour) in pixels {
            if colour.is_on() {
                let from = (point.x + self.anchor.0, point.y + self.anchor.1);
                let (x, y) = self.turn.transform(from.0, from.1);
                self.canvas.mix((self.at.0 + x, self.at.1 + y), self.colour);
            }
        }
        Ok(())
    }
}
