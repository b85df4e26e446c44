//! Versions of Ray, from `rayVersion` or from the tag of an official image.

use std::str::FromStr;

use crate::text::Misread;

/// A release of Ray. Later releases are greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, derive_more::Display)]
#[display("{major}.{minor}.{patch}")]
pub struct RayVersion {
    /// The 2 of 2.56.0.
    pub major: u32,
    /// The 56 of 2.56.0.
    pub minor: u32,
    /// The 0 of 2.56.0.
    pub patch: u32,
}

impl RayVersion {
    /// The version with these numbers.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self {
            major,
            minor,
            patch,
        }
    }

    /// The version that the tag of an image names: `rayproject/ray:2.56.0-py311-gpu` is 2.56.0.
    /// Tags such as `nightly` and `latest`, an image with a digest alone and one without a tag name
    /// no version.
    pub fn of_image(image: &str) -> Option<Self> {
        let untagged = image.split('@').next()?;
        // A colon before the last slash belongs to the port of a registry.
        let (_, tag) = untagged.rsplit('/').next()?.split_once(':')?;
        tag.split('-').next()?.parse().ok()
    }

    /// Like [`Self::of_image`], but only for the images that the Ray project publishes
    /// (`rayproject/ray`, `rayproject/ray-ml`, `rayproject/ray-llm`, from any mirror).
    pub fn of_official_image(image: &str) -> Option<Self> {
        let repository = image.split('@').next()?;
        let name_at = repository.rfind('/').map_or(0, |slash| slash + 1);
        let (name, _) = repository[name_at..].split_once(':')?;
        let owner = repository[..name_at]
            .trim_end_matches('/')
            .rsplit('/')
            .next()?;
        (owner == "rayproject" && (name == "ray" || name.starts_with("ray-")))
            .then(|| Self::of_image(image))
            .flatten()
    }
}

impl FromStr for RayVersion {
    type Err = Misread;

    /// Reads `2.56.0`, `v2.56.0`, `2.56`, `2.56.0rc1`, `2.56.0.dev0`, `2.56.0+abc`.
    fn from_str(text: &str) -> Result<Self, Misread> {
        let mut parts = text
            // Tags of Git begin so, and people copy them.
            .strip_prefix('v')
            .unwrap_or(text)
            .split(['.', '-', '+']);
        let mut next = || -> Option<u32> {
            let part = parts.next()?;
            // Anything after the digits is a pre-release or a build: `2.56.0rc1` counts as 2.56.0.
            let end = part.find(|c: char| !c.is_ascii_digit());
            part.get(..end.unwrap_or(part.len()))?.parse().ok()
        };
        let wrong = || Misread("it is not a version like 2.56.0".to_owned());
        Ok(Self {
            major: next().ok_or_else(wrong)?,
            minor: next().ok_or_else(wrong)?,
            patch: next().unwrap_or(0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_versions() {
        assert_eq!("2.56.0".parse(), Ok(RayVersion::new(2, 56, 0)));
        assert_eq!("2.56".parse(), Ok(RayVersion::new(2, 56, 0)));
        assert_eq!("v2.9.3rc1".parse(), Ok(RayVersion::new(2, 9, 3)));
        assert_eq!("3.0.0.dev0".parse(), Ok(RayVersion::new(3, 0, 0)));
        assert!("nightly".parse::<RayVersion>().is_err());
        assert!("2".parse::<RayVersion>().is_err());
    }

    #[test]
    fn reads_image_tags() {
        let of = RayVersion::of_image;
        assert_eq!(
            of("rayproject/ray:2.56.0-py311-gpu"),
            Some(RayVersion::new(2, 56, 0))
        );
        assert_eq!(
            of("localhost:5000/ray:2.9.0@sha256:abc"),
            Some(RayVersion::new(2, 9, 0))
        );
        assert_eq!(of("rayproject/ray:nightly"), None);
        assert_eq!(of("localhost:5000/ray"), None);
    }

    #[test]
    fn knows_official_images() {
        let of = RayVersion::of_official_image;
        assert!(of("rayproject/ray:2.9.0").is_some());
        assert!(of("mirror.example/rayproject/ray-ml:2.9.0-gpu").is_some());
        assert_eq!(of("mycorp/trainer:2.9.0"), None);
        assert_eq!(of("mycorp/ray:2.9.0"), None);
    }
}
