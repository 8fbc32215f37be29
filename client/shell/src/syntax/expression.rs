//! Expressions, and the arguments of commands and methods.

use super::cursor::Cursor;
use super::{Expression, MethodCall, Operator, Parsed, SyntaxError, Value};

const SUMS: [(char, Operator); 2] = [('+', Operator::Add), ('-', Operator::Subtract)];
const PRODUCTS: [(char, Operator); 3] = [
    ('*', Operator::Multiply),
    ('/', Operator::Divide),
    ('%', Operator::Modulo),
];

/// Whether a call is a `map` whose items a block may follow.
fn is_map(call: &MethodCall) -> bool {
    ["map", "collect"].contains(&call.name.as_str()) && call.arguments.is_empty()
}

/// Whether a call is the name of a Java class, behind those of its packages.
fn is_class(call: &MethodCall) -> bool {
    call.name.starts_with(|first: char| first.is_ascii_uppercase())
}

/// An argument: a value, or a pair.
type Argument = (Option<Vec<u8>>, Expression);

impl Cursor<'_> {
    pub(super) fn expression(&mut self) -> Parsed<Expression> {
        let first = self.sum()?;
        let end = self.at;
        self.blanks(false);
        if !self.take_if("..") {
            // Newlines behind a value may end the statement.
            self.at = end;
            return Ok(first);
        }
        let is_exclusive = self.take_if(".");
        self.blanks(true);
        let last = self.sum()?;
        Ok(Expression::Range(Box::new((first, last, is_exclusive))))
    }

    fn sum(&mut self) -> Parsed<Expression> {
        self.operations(&SUMS, Self::product)
    }

    fn product(&mut self) -> Parsed<Expression> {
        self.operations(&PRODUCTS, Self::term)
    }

    /// Operands with these operators between them.
    fn operations(
        &mut self,
        operators: &[(char, Operator)],
        operand: fn(&mut Self) -> Parsed<Expression>,
    ) -> Parsed<Expression> {
        let first = operand(self)?;
        let mut others = Vec::new();
        loop {
            let end = self.at;
            self.blanks(false);
            let next = self.peek();
            let known = operators.iter().find(|(sign, _)| next == Some(*sign));
            let Some((_, operator)) = known else {
                self.at = end;
                break;
            };
            self.take();
            self.blanks(true);
            others.push((*operator, operand(self)?));
        }
        Ok(if others.is_empty() {
            first
        } else {
            Expression::Operations(Box::new(first), others)
        })
    }

    fn term(&mut self) -> Parsed<Expression> {
        let mut value = self.value()?;
        loop {
            let mut calls = self.calls()?;
            let block = match calls.last() {
                Some(call) if self.is_value && is_map(call) => self.map_block()?,
                _ => None,
            };
            if block.is_some() {
                calls.pop();
            }
            if !calls.is_empty() {
                value = Expression::Calls(Box::new(value), calls);
            }
            let Some((names, body)) = block else {
                return Ok(value);
            };
            value = Expression::Map(Box::new(value), names, Box::new(body));
        }
    }

    /// The block behind a `map` whose value is used: `{ |i| "row#{i}" }`. It is one expression, without a
    /// further block, so that a value takes no more rounds than a loop.
    fn map_block(&mut self) -> Parsed<Option<(Vec<String>, Expression)>> {
        let end = self.at;
        self.blanks(false);
        let begin = self.at;
        if self.peek() != Some('{') {
            self.at = end;
            return Ok(None);
        }
        if self.is_in_map {
            return Err(self.not_ruby(begin, "a block in the block of map"));
        }
        self.is_in_map = true;
        let block = self.nested(|cursor| {
            cursor.take();
            let names = cursor.block_variables()?;
            cursor.blanks(true);
            let body = cursor.as_value(Self::expression)?;
            cursor.blanks(true);
            if cursor.take_if("}") {
                return Ok(Some((names, body)));
            }
            Err(SyntaxError {
                hint: Some(
                    "the block of a map whose value is used is one expression: { |i| \"row#{i}\" }"
                        .to_owned(),
                ),
                ..cursor.unexpected("'}'")
            })
        });
        self.is_in_map = false;
        block
    }

    /// Methods and indexes directly behind a value.
    pub(super) fn calls(&mut self) -> Parsed<Vec<MethodCall>> {
        let mut calls = Vec::new();
        loop {
            let rest = self.rest();
            if rest.starts_with('[') {
                let arguments = self.nested(|cursor| {
                    cursor.take();
                    cursor.arguments(Some(']'))
                })?;
                let name = "[]".to_owned();
                calls.push(MethodCall { name, arguments });
            } else if rest.starts_with('.') && !rest.starts_with("..") {
                self.take();
                let mut name = self.word().to_owned();
                if name.is_empty() {
                    return Err(self.unexpected("a method"));
                }
                for mark in ["?", "!"] {
                    if self.take_if(mark) {
                        name.push_str(mark);
                    }
                }
                let arguments = if self.peek() == Some('(') {
                    self.bracketed()?
                } else {
                    Vec::new()
                };
                calls.push(MethodCall { name, arguments });
            } else if rest.starts_with("::") && calls.last().is_some_and(is_class) {
                // A constant of a Java class: `org.apache.hadoop.hbase.HConstants::ALL_VERSIONS`.
                self.at += 2;
                let name = self.word().to_owned();
                if name.is_empty() {
                    return Err(self.unexpected("a constant"));
                }
                calls.push(MethodCall {
                    name,
                    arguments: Vec::new(),
                });
            } else {
                return Ok(calls);
            }
        }
    }

    /// Arguments in parentheses, the first of which comes next.
    pub(super) fn bracketed(&mut self) -> Parsed<Vec<Expression>> {
        self.nested(|cursor| {
            cursor.take();
            cursor.arguments(Some(')'))
        })
    }

    /// Arguments up to the closing bracket, or to the end of the command where there is none.
    pub(super) fn arguments(&mut self, close: Option<char>) -> Parsed<Vec<Expression>> {
        self.as_value(|cursor| cursor.arguments_up_to(close))
    }

    fn arguments_up_to(&mut self, close: Option<char>) -> Parsed<Vec<Expression>> {
        let mut arguments = Vec::new();
        let mut pairs = Vec::new();
        loop {
            self.blanks(close.is_some());
            if let Some(close) = close
                && self.peek() == Some(close)
            {
                self.take();
                break;
            }
            let begin = self.at;
            match self.argument()? {
                (Some(key), value) => pairs.push((key, value)),
                (None, _) if !pairs.is_empty() => {
                    let hint = Some("pairs come last; put braces around them: { KEY => value }".to_owned());
                    return Err(SyntaxError {
                        hint,
                        ..self.error_at(begin, "a value stands behind a pair without braces")
                    });
                }
                (None, value) => arguments.push(value),
            }
            let end = self.at;
            self.blanks(close.is_some());
            if self.take_if(",") {
                self.blanks(true);
                if self.peek().is_none() {
                    return Err(self.unexpected("another argument"));
                }
                continue;
            }
            match close {
                None => {
                    self.at = end;
                    break;
                }
                Some(close) if self.peek() == Some(close) => {}
                Some(close) => return Err(self.unexpected(&format!("',' or '{close}'"))),
            }
        }
        if !pairs.is_empty() {
            arguments.push(Expression::Hash(pairs));
        }
        Ok(arguments)
    }

    fn argument(&mut self) -> Parsed<Argument> {
        let begin = self.at;
        // Ruby's short form of a pair: `name: value`.
        let word = self.word();
        if !word.is_empty() && self.rest().starts_with(':') && !self.rest().starts_with("::") {
            let key = word.as_bytes().to_vec();
            self.take();
            self.blanks(true);
            return Ok((Some(key), self.expression()?));
        }
        self.at = begin;
        let value = self.expression()?;
        let end = self.at;
        self.blanks(true);
        if !self.take_if("=>") {
            // Newlines behind a value that is no key may end the command.
            self.at = end;
            return Ok((None, value));
        }
        let key = match value {
            Expression::Literal(Value::Bytes(key)) => key,
            Expression::Literal(Value::Constant(name)) => name.into_bytes(),
            Expression::Literal(Value::Integer(number)) => number.to_string().into_bytes(),
            _ => return Err(self.error_at(begin, "a key is a string, a symbol or a constant")),
        };
        self.blanks(true);
        Ok((Some(key), self.expression()?))
    }

    fn value(&mut self) -> Parsed<Expression> {
        let begin = self.at;
        let rest = self.rest();
        let behind = |first: char| rest[first.len_utf8()..].chars().next();
        Ok(match self.peek() {
            Some('\'') => Expression::Literal(self.single_quoted(['\'', '\''])?),
            Some('\u{2018}' | '\u{2019}') => {
                Expression::Literal(self.single_quoted(['\u{2019}', '\u{2018}'])?)
            }
            Some('"') => self.double_quoted(['"', '"'])?,
            Some('\u{201c}' | '\u{201d}') => self.double_quoted(['\u{201d}', '\u{201c}'])?,
            Some('[') => self.nested(|cursor| {
                cursor.take();
                cursor.arguments(Some(']')).map(Expression::Array)
            })?,
            Some('{') => self.nested(|cursor| cursor.hash(begin))?,
            Some('(') => self.nested(Self::parenthesized)?,
            Some('-') if behind('-') == Some('-') && rest[2..].starts_with(char::is_alphabetic) => {
                self.at += 2;
                let name = format!("--{}", self.word());
                Expression::Literal(Value::Bytes(name.into_bytes()))
            }
            Some('-') if behind('-').is_some_and(|next| next.is_alphabetic() || next == '(') => {
                self.take();
                let value = self.nested(Self::term)?;
                let zero = Expression::Literal(Value::Integer(0));
                Expression::Operations(Box::new(zero), vec![(Operator::Subtract, value)])
            }
            Some('0'..='9' | '-' | '+') => Expression::Literal(self.number()?),
            Some(':') => self.symbol()?,
            Some('%') if self.is_at_words() => self.words()?,
            Some('/') => {
                return Err(SyntaxError {
                    hint: Some("a regular expression is a string: 'abc.*'".to_owned()),
                    ..self.unexpected("a value")
                });
            }
            Some(sign @ ('@' | '$' | '`')) => return Err(self.not_ruby(begin, &sign.to_string())),
            _ => self.bare_word()?,
        })
    }

    fn hash(&mut self, begin: usize) -> Parsed<Expression> {
        self.take();
        let mut inside = self.arguments(Some('}'))?;
        match (inside.pop(), inside.is_empty()) {
            (None, _) => Ok(Expression::Hash(Vec::new())),
            (Some(Expression::Hash(pairs)), true) => Ok(Expression::Hash(pairs)),
            _ => Err(SyntaxError {
                hint: Some("write { KEY => value }".to_owned()),
                ..self.error_at(begin, "braces hold a value that is no pair")
            }),
        }
    }

    fn parenthesized(&mut self) -> Parsed<Expression> {
        self.take();
        self.blanks(true);
        let value = self.as_value(Self::expression)?;
        self.blanks(true);
        if self.take_if(")") {
            Ok(value)
        } else {
            Err(self.unexpected("')'"))
        }
    }

    fn symbol(&mut self) -> Parsed<Expression> {
        self.take();
        if self.peek() == Some('"') {
            return self.double_quoted(['"', '"']);
        }
        match self.word() {
            "" => Err(self.unexpected("the name of a symbol")),
            name => Ok(Expression::Literal(Value::Bytes(name.as_bytes().to_vec()))),
        }
    }

    fn bare_word(&mut self) -> Parsed<Expression> {
        let begin = self.at;
        let mut name = self.word();
        let value = match name {
            "" => return Err(self.unexpected("a value")),
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "nil" => Value::Nil,
            _ if name.starts_with(|first: char| first.is_ascii_uppercase()) => {
                // Java's constants are known by their last name: `BloomType::ROW` is ROW.
                while self.rest().starts_with("::") {
                    self.at += 2;
                    name = self.word();
                }
                match name {
                    "" => return Err(self.unexpected("a constant")),
                    name => Value::Constant(name.to_owned()),
                }
            }
            _ => {
                self.check_no_keyword(begin, name)?;
                if self.peek() == Some('(') {
                    let hint = format!("its value can be used after it has a name: x = {name}(...)");
                    return Err(SyntaxError {
                        hint: Some(hint),
                        ..self.error_at(begin, format!("'{name}(' is a command inside of another"))
                    });
                }
                return Ok(Expression::Variable(name.to_owned()));
            }
        };
        Ok(Expression::Literal(value))
    }
}
